// SPDX-License-Identifier: Apache-2.0
// Any bytes as a guest's write into the host's region: the check counts exactly the bytes that
// differ, and returns where.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/fuzz/require.hpp"
#include "vfmgr/proof/random_payload.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::verify;
    if (size < 2 || size > 64 * 1024) return 0;
    // The first two bytes choose what is written and where; the rest is written over it.
    auto const payload = Payload::from_seed(42, 1);
    std::vector<std::byte> expected(((size / payload_chunk_bytes) + 2) * payload_chunk_bytes);
    fill(payload, 0, expected);
    auto memory = expected;
    if (data[0] % 2 == 1) poison(memory);
    auto const at = std::size_t{data[1]} % payload_chunk_bytes;
    std::memcpy(memory.data() + at, data + 2, size - 2);
    std::size_t differing = 0;
    for (std::size_t i = 0; i < memory.size(); ++i)
        if (memory[i] != expected[i]) ++differing;
    auto const result = check(payload, 0, memory);
    require(result.mismatches == differing && result.bytes_checked == memory.size());
    require(result.detail.empty() == (differing == 0));
    return 0;
}
