# SPDX-License-Identifier: Apache-2.0
# Libraries of the distribution. What is absent is named with its Debian package: an error where the
# programs need it, else the tests are left out.

# What the programs need: pkg-config module=Debian package. spdlog and fmt are apart, because every
# file sees their headers (CodeGeneration.cmake).
set(modules
  libevent_core=libevent-dev libevent_extra=libevent-dev libevent_openssl=libevent-dev
  prometheus-cpp-core=prometheus-cpp-dev
  spdlog=libspdlog-dev fmt=libfmt-dev CLI11=libcli11-dev tomlplusplus=libtomlplusplus-dev
  nlohmann_json=nlohmann-json3-dev libisal=libisal-dev openssl=libssl-dev
  libibverbs=libibverbs-dev lxc=lxc-dev libzstd=libzstd-dev
  libnetfilter_queue=libnetfilter-queue-dev libbpf=libbpf-dev)
set(headers boost/version.hpp=libboost-dev crypt.h=libcrypt-dev db.h=libdb5.3-dev)
set(test_modules benchmark=libbenchmark-dev catch2=catch2)
set(test_headers rapidcheck.h=librapidcheck-dev)

# Appends to the list `result` what is not there; defines PkgConfig::<module> for what is.
function(crane_find_modules result)
  foreach(row IN LISTS ARGN)
    string(REPLACE "=" ";" row ${row})
    list(GET row 0 module)
    list(GET row 1 package)
    pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(NOT ${module}_FOUND)
      list(APPEND ${result} "${module}: install ${package}")
    endif()
  endforeach()
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

function(crane_find_headers result)
  foreach(row IN LISTS ARGN)
    string(REPLACE "=" ";" row ${row})
    list(GET row 0 header)
    list(GET row 1 package)
    find_path(crane_has_${header} ${header})
    mark_as_advanced(crane_has_${header})
    if(NOT crane_has_${header})
      list(APPEND ${result} "${header}: install ${package}")
    endif()
  endforeach()
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "absent: pkg-config: install pkg-config (make deps)")
endif()
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

set(absent)
crane_find_modules(absent ${modules})
crane_find_headers(absent ${headers})
if(absent)
  list(JOIN absent "\n  absent: " absent)
  message(FATAL_ERROR "Libraries are absent (make deps):\n  absent: ${absent}")
endif()

set(absent)
crane_find_modules(absent ${test_modules})
crane_find_headers(absent ${test_headers})
option(CRANE_TESTS "Build tests and measuring programs" ON)
if(CRANE_TESTS AND absent)
  list(JOIN absent "\n  absent: " absent)
  message(NOTICE "Tests and measuring programs are left out (make deps):\n  absent: ${absent}")
  set(CRANE_TESTS OFF)
endif()

# ccache, where it is installed. It takes precompiled headers only when it may be sloppy with them.
find_program(CRANE_CCACHE ccache)
mark_as_advanced(CRANE_CCACHE)
if(CRANE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CRANE_CCACHE} sloppiness=pch_defines,time_macros)
  set(CMAKE_C_COMPILER_LAUNCHER ${CRANE_CCACHE})
endif()
