// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual randomness (DESIGN D7): per thread a ChaCha20 stream keyed by the seed that the group
// agreed on in its first START, with the thread's slot, generation and operation count as nonce.
// The same on every replica, unpredictable outside the group.
//
// Threads: any with a slot; needs no turn.

#include <cstddef>

namespace crane {

void virtual_random(void* buffer, std::size_t size) noexcept;

// Bytes that are the same at each call, in all processes of the group and all their life.
void agreed_bytes(unsigned char (&out)[16]) noexcept;

// The thread got another slot (fork): its stream restarts.
void restart_random() noexcept;

// One ChaCha20 block (RFC 8439): exposed for the test against its vectors.
void chacha20_block(const unsigned (&input)[16], unsigned char (&out)[64]) noexcept;

}  // namespace crane
