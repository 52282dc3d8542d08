# SPDX-License-Identifier: Apache-2.0
# The kinds of targets. A library `x` of ours is crane::x and lies in lib/libx.a.

# Sources by pattern, below the current folder; a file that is added is noticed by the next build.
# crane_glob(<variable> <pattern>... [EXCEPT <regular expression>...])
function(crane_glob variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  list(TRANSFORM arg_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${arg_UNPARSED_ARGUMENTS})
  foreach(pattern IN LISTS arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/${pattern}$")
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# crane_library(<name> [KIND programs|tools] SOURCES <pattern>... [EXCEPT <regex>...]
#               [USES <library>...])
# What it uses is linked into the programs that use it; libraries may use each other. Without a KIND
# it is of the kind programs.
function(crane_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND" "SOURCES;EXCEPT;USES")
  crane_glob(sources ${arg_SOURCES} EXCEPT ${arg_EXCEPT})
  add_library(crane_${name} STATIC)
  add_library(crane::${name} ALIAS crane_${name})
  set_target_properties(crane_${name} PROPERTIES OUTPUT_NAME ${name})
  target_link_libraries(crane_${name} PUBLIC crane::libraries ${arg_USES})
  crane_sources(crane_${name} "${arg_KIND}" "${arg_USES}" ${sources})
endfunction()

# crane_program(<name> [KIND programs|tools|test] SOURCES <pattern>... USES <library>...)
function(crane_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND" "SOURCES;EXCEPT;USES")
  crane_glob(sources ${arg_SOURCES} EXCEPT ${arg_EXCEPT})
  add_executable(${name})
  target_link_libraries(${name} PRIVATE crane::libraries ${arg_USES})
  crane_sources(${name} "${arg_KIND}" "${arg_USES}" ${sources})
endfunction()
