// SPDX-License-Identifier: Apache-2.0
// Decides which names introduce a secret, in any format. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vfmgr::checks {

enum class Secrecy {
    none,
    labelled,  // "key", "pin", "pwd": ambiguous words, secret only if '=' or ':' follows
    plain,     // "password", "token", "psk": the value is secret also after a blank
};

// Recognizes "PrivateKey", "--api-key", "wep-key0", "MYSQL_PWD". RDMA's keys (lkey, pkey …) are no
// secrets.
[[nodiscard]] Secrecy secrecy_of(std::string_view name);

// Removes secrets from text of any format: values after a secret's name (secrecy_of()), keys
// between "-----BEGIN" and "-----END", credentials in URLs, and secrets with a known form. If a
// format leaves the end of a secret open, it removes more rather than less. Pure; any thread.

// Idempotent.
[[nodiscard]] std::string redact(std::string_view text);

}  // namespace vfmgr::checks
