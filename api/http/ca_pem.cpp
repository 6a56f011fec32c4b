// SPDX-License-Identifier: Apache-2.0
#include "api/http/ca_pem.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <climits>

#include "api/http/tls.hpp"

namespace vfmgr::http {
namespace {

using PemText = Handle<BIO, BIO_free_all>;

tl::unexpected<Error> no_ca(std::string const& why) {
    ERR_clear_error();
    return fail(Problem::invalid_request, fmt::format("the fleet's CA is not usable: {}", why),
                "give the PEM text of the one certificate of its CA");
}

}  // namespace

Result<std::string> ca_fingerprint(std::string const& pem) {
    if (pem.size() > INT_MAX) return no_ca("it is too long");
    PemText const text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    Certificate const certificate(text ? PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)
                                       : nullptr);
    if (!certificate) return no_ca("it is no certificate");
    Certificate const another(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
    if (another) return no_ca("it is more than one certificate");
    ERR_clear_error();
    if (X509_check_ca(certificate.get()) != 1) return no_ca("it is no CA's certificate");
    return fingerprint(certificate.get());
}

}  // namespace vfmgr::http
