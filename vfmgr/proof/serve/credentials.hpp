// SPDX-License-Identifier: Apache-2.0
// The credentials of a served responder: certificate, key and token in files. The certificate
// identifies it, the token authorises its clients. Values; one thread.
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

// Reads the credentials in `folder`, and creates missing ones: key and token with mode 0600.
// `token_file` is the user's and must exist; empty: the folder's. `listen` is the certificate's
// name.
[[nodiscard]] Result<Credentials> credentials_in(std::string const& folder,
                                                 std::string const& token_file,
                                                 std::string const& listen);

// Reads a token file and strips blanks at both ends.
[[nodiscard]] Result<std::string> read_token_file(std::string const& file);

}  // namespace vfmgr::serve
