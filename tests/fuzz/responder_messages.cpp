// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request to a served responder, and as its answer: no crash, nothing beyond the
// limits, and an accepted message is written, read again and equal.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "tests/fuzz/require.hpp"
#include "vfmgr/proof/serve/remote_responder.hpp"

namespace {

using namespace vfmgr;

template <class T>
void same_again(T const& value) {
    require(from_json_text<T>(to_json_text(nlohmann::json(value))) == value);
}

bool printable(std::string_view text) {
    for (char const ch : text)
        if (static_cast<unsigned char>(ch) < 0x20) return false;
    return true;
}

void as_asked(std::string_view text) {
    if (auto const opening = from_json_text<SessionOpening>(text)) {
        require(opening->permit.nonce.size() <= 64 && opening->permit.run.size() <= 64);
        require(printable(opening->permit.attachment));
        require(opening->permit.mtu >= 68 && opening->permit.mtu <= 65535);
        same_again(*opening);
    }
    if (auto const target = from_json_text<ResponderTarget>(text)) {
        require(valid_host(target->place.host) && target->place.port > 0);
        require(!target->token.empty() && printable(target->token));
    }
}

void as_answer(std::string_view text) {
    if (auto const info = from_json_text<ResponderInfo>(text)) {
        require(printable(info->version) && printable(info->rdma_device));
        same_again(*info);
    }
    if (auto const verdict = serve::read_verdict(text)) {
        require(printable(verdict->detail) && verdict->tests.size() <= 64);
        for (auto const& test : verdict->tests)
            require(printable(test.name) && printable(test.detail) && printable(test.remedy));
        for (auto const& one : verdict->warnings)
            require(printable(one.test) && printable(one.detail) && printable(one.remedy));
    }
    if (auto const offer = serve::read_session_offer(text)) require(offer->session.size() <= 64);
    if (auto const offer = serve::read_stream_offer(text)) require(offer->stream.size() <= 64);
    if (auto const turn = from_json_text<Turn>(text)) same_again(*turn);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    as_asked(text);
    as_answer(text);
    return 0;
}
