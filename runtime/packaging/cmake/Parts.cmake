# SPDX-License-Identifier: Apache-2.0
# What is installed (runtime/packaging/install.sh): programs, their parts, and the pages that the
# programs print: manual pages and completion of their own options, and the lists of answers.
set(pages)

# The standard output of a program as pages/<name>: crane_page(<name> <program> <argument>...)
macro(crane_page name program)
  set(page ${PROJECT_BINARY_DIR}/pages/${name})
  add_custom_command(OUTPUT ${page}
    COMMAND ${CRANE_RUN_WITH} $<TARGET_FILE:${program}> ${ARGN} > ${page}
    DEPENDS ${program} VERBATIM COMMENT "Generating pages/${name}")
  list(APPEND pages ${page})
endmacro()

set(installed crane-run crane-ctl crane-node crane-diff crane-replay)
foreach(program IN LISTS installed)
  foreach(kind IN ITEMS man bash zsh)
    crane_page(${program}.${kind} ${program} --print-page ${kind})
  endforeach()
endforeach()
crane_page(answers.md crane-ctl schema status)
crane_page(answers.schema.json crane-ctl schema json-schema)
add_custom_target(parts ALL DEPENDS libcrane criu_shim ${installed} ${pages})
