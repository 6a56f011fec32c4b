// SPDX-License-Identifier: Apache-2.0
// Tells which names introduce a secret, in any format. Pure; any thread.
#pragma once

#include <string_view>

namespace vfmgr::checks {

enum class Secrecy {
    none,
    told,   // "key", "pin", "pwd": ambiguous words, secret only with '=' or ':' behind them
    plain,  // "password", "token", "psk": the value is secret also behind a blank
};

// Knows "PrivateKey", "--api-key", "wep-key0", "MYSQL_PWD". RDMA's keys (lkey, pkey …) are no
// secrets.
[[nodiscard]] Secrecy secrecy_of(std::string_view name);

}  // namespace vfmgr::checks
