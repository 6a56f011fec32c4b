// SPDX-License-Identifier: Apache-2.0
// Any bytes as a datagram to the responder's echo: the answer to an accepted question has as many
// bytes, and the question is the same when it is written again.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/require.hpp"
#include "vfmgr/proof/echo.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::verify;
    static Payload const secret = Payload::from_seed(1, 0);
    auto const question = parse_question(std::as_bytes(std::span(data, size)));
    if (!question) return 0;
    require(question->bytes == size && question->nonce.size() <= nonce_bytes_max);
    require(make_answer(*question, secret).size() == size);
    auto const again = parse_question(make_question(*question));
    require(again && again->kind == question->kind && again->nonce == question->nonce &&
            again->bytes == size);
    return 0;
}
