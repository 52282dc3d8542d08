// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/program_pages.h"

#include <algorithm>
#include <functional>
#include <set>
#include <type_traits>
#include <vector>

#include "dmt/base/join.h"

namespace crane::setup {
namespace {

bool is_flag(const Word& word) { return std::holds_alternative<Word::Flag>(word.target); }
bool is_option(const Word& word) { return word.names[0] == '-'; }
bool is_shown(const Word& word) { return !word.help.empty(); }

std::string parted(const std::vector<std::string>& words, const std::string& by) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : by) + word;
  return text;
}

// The placeholder of the argument.
std::string argument_of(const Word& word) {
  if (!word.rules.choices.empty()) return parted(word.rules.choices, "|");
  return std::visit(
      [](const auto& target) -> std::string {
        using Target = std::decay_t<decltype(target)>;
        if constexpr (std::is_pointer_v<Target>) {
          return std::is_arithmetic_v<std::remove_pointer_t<Target>> ? "N" : "TEXT";
        } else {
          return "TEXT";
        }
      },
      word.target);
}

// --- man(7) -------------------------------------------------------------------------------------

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool begins = out.empty() || out.back() == '\n';
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string man_option(const Word& word) {
  std::string head = parted(names_of(word), " ");
  if (!is_option(word)) {
    head = word.rules.required ? upper(head) : "[" + upper(head) + "]";
  }
  head = "\\fB" + escaped(head) + "\\fR";
  if (is_option(word) && !is_flag(word)) head += " \\fI" + escaped(argument_of(word)) + "\\fR";
  return ".TP\n" + head + "\n" + escaped(help_of(word)) +
         (word.rules.required && is_option(word) ? " (required)" : "") + "\n";
}

std::string man_words(const Command& command) {
  std::string text;
  for (const Word& word : command.words) {
    if (is_shown(word)) text += man_option(word);
  }
  return text;
}

// Adds all commands below `path`, like "leader transfer [GROUP]".
void man_commands(const Command& command, const std::string& path, std::string& text) {
  for (const Command& one : command.commands) {
    const std::string name = path.empty() ? one.name : path + " " + one.name;
    if (one.commands.empty()) {
      text += ".SS " + escaped(name) + "\n" + escaped(one.help) + "\n" + man_words(one);
    }
    man_commands(one, name, text);
  }
}

std::string version_of(const Program& program) {
  return program.version.substr(0, program.version.find(','));
}

// --- shells -------------------------------------------------------------------------------------

// A prefix of commands and the words that may follow it.
struct Level {
  std::string path;                // "", " leader", " leader transfer"
  std::vector<std::string> words;  // the words that may follow
};

std::vector<std::string> options_of(const Command& command) {
  std::vector<std::string> names;
  for (const Word& word : command.words) {
    if (is_option(word) && is_shown(word)) names.push_back(names_of(word).back());
  }
  return names;
}

// `above`: options of the commands above, which may follow this command, too.
void collect(const Command& command, const std::string& path, const std::vector<std::string>& above,
             std::vector<Level>& levels, bool inherits) {
  Level level{path, {}};
  for (const Command& one : command.commands) level.words.push_back(one.name);
  std::vector<std::string> options = options_of(command);
  options.insert(options.end(), above.begin(), above.end());
  level.words.insert(level.words.end(), options.begin(), options.end());
  levels.push_back(level);
  for (const Command& one : command.commands) {
    collect(one, path + " " + one.name, inherits ? options : above, levels, inherits);
  }
}

std::vector<Level> levels_of(const Program& program) {
  std::vector<Level> levels;
  collect(program.command, "", {"--help", "--version"}, levels, !program.ends_at_program);
  return levels;
}

void each_choice(const Command& command, const std::function<void(const Word&)>& visit) {
  for (const Word& word : command.words) {
    if (!word.rules.choices.empty() && is_shown(word)) visit(word);
  }
  for (const Command& one : command.commands) each_choice(one, visit);
}

// The differences between the two shells.
struct Shell {
  const char* first;  // index of the first word after the program
  const char* words;  // name of the array of the line's words
  const char* at;     // index of the word to complete
  std::string (*answer)(const std::string& words);
};

std::string in_bash(const std::string& words) {
  return "mapfile -t COMPREPLY < <(compgen -W '" + words + "' -- \"${COMP_WORDS[COMP_CWORD]}\")";
}
std::string in_zsh(const std::string& words) { return "compadd -- " + words; }

// A loop over the words typed so far, which finds the level.  It ends the completion at "--",
// because another program's words follow there.
std::string walk(const Program& program, const std::vector<Level>& levels, const Shell& shell) {
  std::string known;
  for (const Level& level : levels) {
    if (!level.path.empty()) known += (known.empty() ? "'" : " | '") + level.path + "'";
  }
  const std::string word = "${" + std::string(shell.words) + "[i]}";
  std::string body;
  if (program.ends_at_program) body += "    [ \"" + word + "\" != -- ] || return 0\n";
  if (!known.empty()) {
    body += "    case \"$level " + word + "\" in\n      " + known + ") level=\"$level " + word +
            "\" ;;\n    esac\n";
  }
  if (body.empty()) return "";
  return "  local i\n  for ((i = " + std::string(shell.first) + "; i < " + shell.at +
         "; ++i)); do\n" + body + "  done\n";
}

std::string completion(const Program& program, const Shell& shell) {
  const std::vector<Level> levels = levels_of(program);
  std::string text = "  local level=''\n" + walk(program, levels, shell) + "  case \"${" +
                     shell.words + "[" + shell.at + " - 1]}\" in\n";
  std::set<std::string>
      printed;  // the options added so far; several commands may have the same one
  each_choice(program.command, [&](const Word& word) {
    const std::string names = parted(names_of(word), " | ");
    if (!printed.insert(names).second) return;
    text += "    " + names + ") " + shell.answer(parted(word.rules.choices, " ")) + "; return ;;\n";
  });
  text += "    *) ;;\n  esac\n  case \"$level\" in\n";
  for (const Level& level : levels) {
    text += "    '" + level.path + "') " + shell.answer(parted(level.words, " ")) + " ;;\n";
  }
  return text + "  esac\n";
}

std::string function_of(const Program& program) {
  std::string name = "_" + program.command.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

std::string man_page(const Program& program) {
  const Command& top = program.command;
  std::string what = top.help;
  while (!what.empty() && what.back() == '.') what.pop_back();
  const std::string name = escaped(top.name);
  std::string synopsis = "\\fB" + name + "\\fR [\\fIoptions\\fR]";
  if (program.ends_at_program) {
    synopsis += " \\-\\- \\fIprogram\\fR [\\fIargument\\fR ...]";
    if (!top.commands.empty()) synopsis += "\n.br\n\\fB" + name + "\\fR \\fIcommand\\fR ...";
  } else if (!top.commands.empty()) {
    synopsis += " \\fIcommand\\fR ...";
  }
  std::string text =
      ".TH " + upper(top.name) + " 1 \"\" \"" + version_of(program) + "\" \"Crane\"\n.SH NAME\n" +
      name + " \\- " + escaped(what) + "\n.SH SYNOPSIS\n" + synopsis + "\n.SH OPTIONS\n" +
      man_words(top) +
      ".TP\n\\fB\\-\\-help\\fR\nshow the options and commands\n"
      ".TP\n\\fB\\-\\-version\\fR\nshow the version, and the versions of all formats\n";
  if (!top.commands.empty()) {
    text += ".SH COMMANDS\n";
    man_commands(top, "", text);
  }
  if (!program.footer.empty()) {
    text += ".SH NOTES\n.nf\n" + escaped(program.footer) + "\n.fi\n";
  }
  text += ".SH SEE ALSO\n";
  const std::vector<std::string> all = {"crane-run", "crane-ctl", "crane-node", "crane-diff",
                                        "crane-replay"};
  std::vector<std::string> others;
  std::copy_if(all.begin(), all.end(), std::back_inserter(others),
               [&top](const std::string& one) { return one != top.name; });
  return text +
         joined(others, [](const std::string& one) { return "\\fB" + escaped(one) + "\\fR(1)"; }) +
         "\n";
}

std::string bash_completion(const Program& program) {
  const std::string name = function_of(program);
  return "# bash completion of " + program.command.name + "\n" + name + "() {\n" +
         completion(program, {"1", "COMP_WORDS", "COMP_CWORD", in_bash}) +
         "}\ncomplete -o default -F " + name + " " + program.command.name + "\n";
}

std::string zsh_completion(const Program& program) {
  const std::string name = function_of(program);
  return "#compdef " + program.command.name + "\n" + name + "() {\n" +
         completion(program, {"2", "words", "CURRENT", in_zsh}) + "}\n" + name + " \"$@\"\n";
}

std::optional<std::string> page_of(const Program& program, const std::string& kind) {
  if (kind == "man") return man_page(program);
  if (kind == "bash") return bash_completion(program);
  if (kind == "zsh") return zsh_completion(program);
  return {};
}

}  // namespace crane::setup
