// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request: a Request within the limits, or a problem document with a 4xx status.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/http/uri.hpp"
#include "api/http/wire.hpp"

using namespace vfmgr::http;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    Limits limits;
    limits.header_bytes_max = 1024;
    limits.body_bytes_max = 512;
    auto const request = read_request({reinterpret_cast<char const*>(data), size}, limits);
    if (!request) {
        auto const problem = nlohmann::json::parse(request.error().body);
        bool const fits = request.error().status >= 400 && request.error().status < 500;
        if (!fits || problem.at("status") != request.error().status) std::abort();
        return 0;
    }
    if (request->body.size() > limits.body_bytes_max) std::abort();
    if (!valid_request_id(request->headers.at("x-request-id"))) std::abort();
    for (auto const& [name, value] : request->headers)
        if (name != lower_case(name) || !valid_header_value(value)) std::abort();
    return 0;
}
