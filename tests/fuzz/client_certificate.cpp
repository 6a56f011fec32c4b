// SPDX-License-Identifier: Apache-2.0
// Any bytes as a client's certificate (DER): names that can be printed, or none.
#include <openssl/x509.h>

#include <cstdint>
#include <cstdlib>

#include "api/http/tls.hpp"

using namespace vfmgr::http;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const* bytes = data;
    Certificate const certificate(d2i_X509(nullptr, &bytes, static_cast<long>(size)));
    if (!certificate) return 0;
    for (auto const& name : certificate_names(certificate.get()))
        if (!valid_certificate_name(name)) std::abort();
    return 0;
}
