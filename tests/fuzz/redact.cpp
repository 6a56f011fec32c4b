// SPDX-License-Identifier: Apache-2.0
// Any text: redacting twice equals redacting once. Any secret, written as each format writes it,
// does not appear in the output.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/require.hpp"
#include "vfmgr/machine/redact.hpp"

namespace {

// The letters of a secret: no blank and no quote, for formats that end there.
constexpr std::string_view letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_-.,;:@%$!*()[]{}|~^?&#";

// '%' stands for the secret.
constexpr auto formats = std::to_array<std::string_view>({
    "[wifi-security]\nkey-mgmt=wpa-psk\npsk=% %\nmtu=1\n",
    "[WireGuard]\nPrivateKey=%\n",
    "[vpn-secrets]\nthing=% %\n[ipv4]\n",
    "tunnels:\n  wg0:\n    key: %\n    port: 1\n",
    "    keys:\n      private: %\n      shared: %\n    port: 1\n",
    "  password: \"% %\"\n",
    "  password: '% %'\n",
    "password: |\n  % %\n  %\nmtu: 1\n",
    "{\"password\": \"% %\", \"mtu\": 1}",
    "{\"a\": {\"api_key\":\"%\"}}",
    "<graphics passwd='% %'/>",
    "<secret type='a'>% %</secret>",
    "curl --user 'me:%' h",
    "x --token % y",
    "x --token=% y",
    "curl -H 'Authorization: Bearer %' h",
    "Environment=\"API_KEY=% %\"\n",
    "export DB_PASS=%\n",
    "  preshared key: %\n",
    "-----BEGIN PRIVATE KEY-----\n%\n%\n-----END PRIVATE KEY-----\n",
});

void require_hidden(std::string_view format, std::string const& secret) {
    std::string text;
    for (char const c : format) text += c == '%' ? secret : std::string(1, c);
    auto const out = vfmgr::checks::redact(text);
    require(out.find(secret) == out.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const once = vfmgr::checks::redact(text);
    require(vfmgr::checks::redact(once) == once);
    // Unlike any of the formats' own words and separators, at both ends.
    std::string secret = "Qz";
    for (std::size_t i = 0; i < size && i < 64; ++i) secret += letters[data[i] % letters.size()];
    secret += "zQ";
    for (auto const format : formats) require_hidden(format, secret);
    return 0;
}
