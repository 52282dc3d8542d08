# SPDX-License-Identifier: Apache-2.0
# What is installed (runtime/packaging/install.sh): programs, their parts, and manual pages and
# completion, which the programs make of their own options and pages.py completes.
set(pages)

# The standard output of a program as pages/<name>: crane_page(<name> <program> <argument>...)
macro(crane_page name program)
  set(printed ${PROJECT_BINARY_DIR}/pages/${name})
  add_custom_command(OUTPUT ${printed}
    COMMAND ${CRANE_RUN_WITH} $<TARGET_FILE:${program}> ${ARGN} > ${printed}
    DEPENDS ${program} VERBATIM COMMENT "Generating pages/${name}")
  list(APPEND pages ${printed})
endmacro()

set(installed crane-run crane-ctl crane-node crane-diff crane-replay)
set(made ${PROJECT_BINARY_DIR}/pages)
set(complete ${PROJECT_SOURCE_DIR}/runtime/packaging/pages/pages.py)
set(reference ${PROJECT_SOURCE_DIR}/runtime/launcher/REFERENCE.md)
set(group_file ${PROJECT_SOURCE_DIR}/runtime/setup/GROUP_FILE.md)
foreach(program IN LISTS installed)
  foreach(kind IN ITEMS man bash zsh)
    set(page ${made}/${program}.${kind})
    set(with ${page}.options ${made}/${program}.man.options)
    set(sources ${with})
    if(kind STREQUAL "man")
      set(with ${page}.options ${reference})
      set(sources ${reference})
    endif()
    crane_page(${program}.${kind}.options ${program} --print-page ${kind})
    add_custom_command(OUTPUT ${page}
      COMMAND python3 ${complete} ${kind} ${with} > ${page}
      DEPENDS ${page}.options ${sources} ${complete} VERBATIM
      COMMENT "Generating pages/${program}.${kind}")
    list(APPEND pages ${page})
  endforeach()
endforeach()
crane_page(answers.md crane-ctl schema status)
crane_page(answers.schema.json crane-ctl schema json-schema)
add_custom_command(OUTPUT ${made}/group.toml.man
  COMMAND python3 ${complete} group-file ${group_file} > ${made}/group.toml.man
  DEPENDS ${group_file} ${complete} VERBATIM COMMENT "Generating pages/group.toml.man")
add_custom_target(parts ALL DEPENDS libcrane criu_shim ${installed} ${pages}
  ${made}/group.toml.man)
