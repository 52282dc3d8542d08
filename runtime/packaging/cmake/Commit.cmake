# SPDX-License-Identifier: Apache-2.0
# The commit that --version shows. It is in version.cc's object alone: a new commit compiles that,
# and links. As a script (-P, with SOURCE and HEADER) this file writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(commit unknown)
  # A source tree inside of another repository has no commit of its own.
  execute_process(COMMAND git rev-parse --show-cdup WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE above RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND above STREQUAL "")
    execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
      OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  # The programs of NextSchedule.cmake have a name instead.
  file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT
    "#ifndef CRANE_COMMIT\n#define CRANE_COMMIT \"@commit@\"\n#endif\n")
  cmake_path(GET HEADER PARENT_PATH folder)
  file(CONFIGURE OUTPUT ${folder}/commit @ONLY CONTENT "@commit@\n")
  return()
endif()

# It runs in every build and leaves the header alone unless the commit is another one.
set(CRANE_COMMIT_HEADER ${PROJECT_BINARY_DIR}/commit.h)
set(write ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${CRANE_COMMIT_HEADER}
  -P ${CMAKE_CURRENT_LIST_FILE})
execute_process(COMMAND ${write})  # for clang-tidy, without a build
add_custom_target(crane_commit COMMAND ${write} BYPRODUCTS ${CRANE_COMMIT_HEADER}
  VERBATIM COMMENT "Looking for a new commit")
add_dependencies(crane_setup crane_commit)
set_source_files_properties(${PROJECT_SOURCE_DIR}/runtime/setup/version.cc PROPERTIES
  OBJECT_DEPENDS ${CRANE_COMMIT_HEADER}
  SKIP_PRECOMPILE_HEADERS ON
  COMPILE_OPTIONS "-include;${CRANE_COMMIT_HEADER}")
