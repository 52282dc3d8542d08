# SPDX-License-Identifier: Apache-2.0
# How our code is compiled, as targets whose usage requirements carry the flags.
#   crane::common    every C++ file of ours, libcrane.so's included
#   crane::code      every file of a program or a test: common, sanitizers, spdlog and fmt
option(CRANE_WARNINGS "Compile with warnings, as errors" ON)
set(CRANE_SANITIZERS "" CACHE STRING "Sanitizers of programs and tests, as -fsanitize takes them")
option(CRANE_LIBFUZZER "Fuzz targets with clang's engine instead of tests/fuzz/driver.cc" OFF)

add_library(crane_warnings INTERFACE)
if(CRANE_WARNINGS)
  target_compile_options(crane_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion
    -Wnon-virtual-dtor -Wundef -Werror)
else()
  target_compile_options(crane_warnings INTERFACE -w)
endif()

add_library(crane_common INTERFACE)
add_library(crane::common ALIAS crane_common)
target_include_directories(crane_common INTERFACE ${PROJECT_SOURCE_DIR})
# Messages name files as the repository does, wherever it lies.
target_compile_options(crane_common INTERFACE -fno-omit-frame-pointer
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_link_libraries(crane_common INTERFACE crane_warnings Threads::Threads)

# The preloaded library lives in processes of others: no sanitizer is in crane::common.
add_library(crane_sanitizers INTERFACE)
if(CRANE_SANITIZERS)
  set(flags -fsanitize=${CRANE_SANITIZERS})
  if(CRANE_SANITIZERS MATCHES "undefined")
    list(APPEND flags -fno-sanitize-recover=all)
  endif()
  # The check of vptr reads memory through a pipe: a test without descriptors would fail.
  if(CRANE_SANITIZERS MATCHES "undefined" AND NOT CRANE_LIBFUZZER)
    list(APPEND flags -fno-sanitize=vptr)
  endif()
  target_compile_options(crane_sanitizers INTERFACE ${flags})
  target_link_options(crane_sanitizers INTERFACE ${flags})
endif()
if(CRANE_LIBFUZZER)
  target_compile_options(crane_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
endif()
# gcc's tsan cannot map its shadow under this kernel's address randomisation.
set(CRANE_RUN_WITH)
if(CRANE_SANITIZERS STREQUAL "thread")
  set(CRANE_RUN_WITH setarch -R)
endif()

add_library(crane_code INTERFACE)
add_library(crane::code ALIAS crane_code)
target_link_libraries(crane_code INTERFACE crane_common crane_sanitizers PkgConfig::spdlog
  PkgConfig::fmt)
# A program loads the libraries that it uses, not all that one of its parts might use.
target_link_options(crane_code INTERFACE LINKER:--as-needed)
