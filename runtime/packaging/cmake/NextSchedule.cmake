# SPDX-License-Identifier: Apache-2.0
# The programs with the next version of the schedule, for tests/e2e/hand_over.py. The files that
# look into the table of versions are compiled again, and come before the libraries with the first.
set(next ${PROJECT_BINARY_DIR}/next-schedule)
set(versions dmt/base/versions.h)
add_custom_command(OUTPUT ${next}/${versions}
  COMMAND sed -E "/kSchedule =/s/([0-9]+);/(\\1 + 1);/" ${PROJECT_SOURCE_DIR}/${versions}
    > ${next}/${versions}
  DEPENDS ${PROJECT_SOURCE_DIR}/${versions} VERBATIM COMMENT "Generating next-schedule/${versions}")

# crane_next_objects(<library> <source>...): these files of a library, with the next version.
# tests/lint/broken_builds.py fails when one is missing here.
function(crane_next_objects library)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
  add_library(next_${library} OBJECT ${ARGN} ${next}/${versions})
  target_include_directories(next_${library} BEFORE PRIVATE ${next})
  target_compile_options(next_${library} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(next_${library} PRIVATE CRANE_COMMIT="next-schedule")
  target_link_libraries(next_${library} PRIVATE crane::${library})
endfunction()
crane_next_objects(setup runtime/setup/version.cc)
crane_next_objects(host proxy/host/agreed.cc)
crane_next_objects(launcher runtime/launcher/ctl/ctl_backup.cc runtime/launcher/ctl/log_copy.cc
  runtime/launcher/ctl/ctl_hand_over.cc runtime/launcher/ctl/ctl_versions.cc)

# crane_next_program(<program> <library that it links> <library whose objects are replaced>...)
function(crane_next_program program library)
  add_executable(next-${program} $<TARGET_OBJECTS:${program}>)
  foreach(replaced IN LISTS ARGN)
    target_sources(next-${program} PRIVATE $<TARGET_OBJECTS:next_${replaced}>)
  endforeach()
  target_link_libraries(next-${program} PRIVATE ${library})
  set_target_properties(next-${program} PROPERTIES OUTPUT_NAME ${program}
    RUNTIME_OUTPUT_DIRECTORY ${next})
endfunction()
crane_next_program(crane-node crane::analysis host setup)
crane_next_program(crane-run crane::launcher launcher setup)
crane_next_program(crane-ctl crane::launcher launcher setup)
add_custom_target(next-schedule)
add_dependencies(next-schedule next-crane-node next-crane-run next-crane-ctl)
