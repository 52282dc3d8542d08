#compdef crane-backup
_crane_backup() {
  case "${words[CURRENT - 1]}" in
    --config | --verify) _files; return ;;
  esac
  compadd -- $(crane-ctl list 2> /dev/null | awk 'NR > 1 { print $1 }') --config --verify --help
}
_crane_backup "$@"
