// SPDX-License-Identifier: Apache-2.0
// The same program with points that cannot be used: no thread waits for another one.
//
// build: -rdynamic -l:crane_soft_barrier_library -Wl,-rpath,$ORIGIN
// solo: --barriers unmovable:3:1000,malloc:3:1000,no_such:3:9,own_function:1:1000
#include "soft_barrier_points.c"

// It begins with a position-dependent instruction.
asm(".text\n.globl unmovable\n.type unmovable, @function\n"
    "unmovable:\n  lea unmovable(%rip), %rax\n  ret\n.size unmovable, . - unmovable\n");
