// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual randomness (DESIGN D7): a ChaCha20 stream per thread. The key is the seed on which the
// group agreed in its first START; the nonce is the thread's slot, generation and operation count.
// The stream is equal on every replica and unpredictable outside the group.
//
// Threads: any with a slot; needs no turn.

#include <cstddef>

namespace crane {

void virtual_random(void* buffer, std::size_t size) noexcept;

// Returns bytes that are equal at each call, in all processes of the group, for the life of the
// group.
void agreed_bytes(unsigned char (&out)[16]) noexcept;

// Restarts the stream of a thread that got another slot (fork).
void restart_random() noexcept;

// One ChaCha20 block (RFC 8439): exposed for the test against its vectors.
void chacha20_block(const unsigned (&input)[16], unsigned char (&out)[64]) noexcept;

}  // namespace crane
