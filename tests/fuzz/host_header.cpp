// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Host header: no host, or one in the form in which it is compared.
#include <cstdint>

#include "service/auth/origin.hpp"
#include "tests/fuzz/require.hpp"

using namespace vfmgr;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const authority = parse_authority({reinterpret_cast<char const*>(data), size});
    if (!authority) return 0;
    auto const& host = authority->host;
    require(!host.empty() && !host.starts_with("*.") && host_name(host) == host);
    auto const port = ":" + std::to_string(authority->port);
    bool const is_v6 = host.find(':') != std::string::npos;
    auto const again = parse_authority(is_v6 ? "[" + host + "]" + port : host + port);
    require(again == authority);
    return 0;
}
