// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/page.h"

// The assembler includes the file unchanged; make rebuilds this file when page.html changes.
asm(".section .rodata\n"
    ".global crane_page_begin\n"
    "crane_page_begin:\n"
    ".incbin \"proxy/host/http/page.html\"\n"
    ".global crane_page_end\n"
    "crane_page_end:\n"
    ".previous\n");

extern "C" {
extern const char crane_page_begin[];
extern const char crane_page_end[];
}

namespace crane::node {

std::string_view page_html() noexcept {
  return {crane_page_begin, static_cast<std::size_t>(crane_page_end - crane_page_begin)};
}

}  // namespace crane::node
