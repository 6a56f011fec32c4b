// SPDX-License-Identifier: Apache-2.0
// SHA-256 digests, in hex. A library of its own: the API's programs need no RDMA for it. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace vfmgr::verify {

// Lower-case hex of SHA-256(nonce || bytes), over a run's nonce and the bytes that were
// transferred: an earlier run's digest is useless in this one.
[[nodiscard]] std::string digest_hex(std::string_view nonce, std::span<std::byte const> bytes);
// Lower-case hex of SHA-256(text).
[[nodiscard]] inline std::string digest_hex(std::string_view text) {
    return digest_hex("", std::as_bytes(std::span(text)));
}

}  // namespace vfmgr::verify
