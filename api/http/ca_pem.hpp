// SPDX-License-Identifier: Apache-2.0
// The certificate of a CA as text, as a host gets that of its fleet. Pure; any thread.
#pragma once

#include <string>

#include "api/types/problem.hpp"

namespace vfmgr::http {

// Returns the SHA-256 of the certificate, in hex, as PeerCertificate::authority has it. Fails with
// invalid_request unless the text is one certificate, and that one is a CA's.
[[nodiscard]] Result<std::string> ca_fingerprint(std::string const& pem);

}  // namespace vfmgr::http
