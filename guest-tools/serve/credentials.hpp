// SPDX-License-Identifier: Apache-2.0
// How a served responder is known, and who may use it: certificate, key and token in files. Owned
// by nobody; one thread.
#pragma once

#include <string>

#include "api/types/problem.hpp"

namespace vfmgr::serve {

struct Credentials {
    std::string certificate_file;
    std::string key_file;
    std::string fingerprint;  // of the certificate
    std::string token_file;
    std::string token;
};

// Those of `folder`; what is missing there is made: key and token 0600. `token_file` is the user's,
// which must be there; empty: the folder's. `listen` is the certificate's name.
[[nodiscard]] Result<Credentials> credentials_in(std::string const& folder,
                                                 std::string const& token_file,
                                                 std::string const& listen);

// A token's file, without blanks at its ends.
[[nodiscard]] Result<std::string> read_token_file(std::string const& file);

}  // namespace vfmgr::serve
