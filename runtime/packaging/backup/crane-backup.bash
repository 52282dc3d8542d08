# bash completion of crane-backup
_crane_backup() {
  case "${COMP_WORDS[COMP_CWORD - 1]}" in
    --config | --verify) return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$(crane-ctl list 2> /dev/null | awk 'NR > 1 { print $1 }') --config --verify --help" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _crane_backup crane-backup
