# SPDX-License-Identifier: Apache-2.0
# What is installed (runtime/packaging/install.sh): programs, their parts, and manual pages and
# completion, which the programs make of their own options.
set(pages)
set(installed crane-run crane-ctl crane-node crane-diff crane-replay)
foreach(program IN LISTS installed)
  foreach(kind IN ITEMS man bash zsh)
    set(page ${PROJECT_BINARY_DIR}/pages/${program}.${kind})
    add_custom_command(OUTPUT ${page}
      COMMAND ${CRANE_RUN_WITH} $<TARGET_FILE:${program}> --print-page ${kind} > ${page}
      DEPENDS ${program} VERBATIM COMMENT "Generating pages/${program}.${kind}")
    list(APPEND pages ${page})
  endforeach()
endforeach()
add_custom_target(parts ALL DEPENDS libcrane criu_shim ${installed} ${pages})
