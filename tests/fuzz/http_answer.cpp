// SPDX-License-Identifier: Apache-2.0
// Any bytes as a server's answer: the same answer in whatever parts they come, and nothing of the
// connection in what is passed back to a client.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "api/http/forward.hpp"
#include "api/http/outgoing.hpp"
#include "api/http/uri.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace vfmgr::http;

struct Read {
    std::optional<Response> answer;
    bool keeps_connection = false;
};

Read read(std::string_view bytes, std::size_t part, AnswerReader::Of of) {
    AnswerReader reader(of);
    bool fits = true;
    for (; !bytes.empty() && fits; bytes.remove_prefix(std::min(part, bytes.size())))
        fits = !reader.read(bytes.substr(0, part)) && !(reader.has_header() && reader.read({}));
    if (!fits || reader.end() || !reader.done()) return {};
    Read read;
    read.keeps_connection = reader.keeps_connection();
    read.answer = reader.response();
    return read;
}

void check_passed_back(Response const& answer) {
    auto const given = forwarded_answer(answer, "/v1/hosts/a");
    for (auto const& [name, value] : given.headers) {
        require(name == lower_case(name));
        require(answer.headers.contains(name));
        for (auto const* const never : {"connection", "transfer-encoding", "content-length",
                                        "set-cookie", "upgrade", "keep-alive"})
            require(name != never);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    for (auto const of : {AnswerReader::Of::get, AnswerReader::Of::head}) {
        auto const whole = read(bytes, size + 1, of);
        for (std::size_t const part : {1U, 7U, 61U}) {
            auto const parts = read(bytes, part, of);
            require(parts.answer.has_value() == whole.answer.has_value());
            if (!whole.answer) continue;
            require(parts.answer->status == whole.answer->status);
            require(parts.answer->headers == whole.answer->headers);
            require(parts.answer->body == whole.answer->body);
            require(parts.keeps_connection == whole.keeps_connection);
        }
        if (whole.answer) check_passed_back(*whole.answer);
    }
    return 0;
}
