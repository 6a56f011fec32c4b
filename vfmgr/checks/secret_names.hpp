// SPDX-License-Identifier: Apache-2.0
// Which names stand before a secret, in whatever format. Pure; any thread.
#pragma once

#include <string_view>

namespace vfmgr::checks {

enum class Secrecy {
    none,
    told,   // "key", "pin", "pwd": words of other things, too, so that '=' or ':' must follow
    plain,  // "password", "token", "psk": what follows is secret also behind a blank
};

// "PrivateKey", "--api-key", "wep-key0", "MYSQL_PWD". RDMA's keys (lkey, pkey …) are none.
[[nodiscard]] Secrecy secrecy_of(std::string_view name);

}  // namespace vfmgr::checks
