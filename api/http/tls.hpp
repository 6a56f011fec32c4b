// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 contexts for server and client, from OpenSSL. Internal to api/http.
// A context is owned by its caller; any thread.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "api/http/http.hpp"

namespace vfmgr::http {

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* object) const noexcept {
        (void)Free(object);
    }
};
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using SslContext = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;

[[nodiscard]] Result<SslContext> server_context(TlsListen const& where);

// Trusts the CA file, or checks nothing when a fingerprint is given: then check_fingerprint() after
// the handshake decides.
[[nodiscard]] Result<SslContext> client_context(TlsTarget const& target);
// Server name indication, and with a CA file the name that the certificate must hold.
[[nodiscard]] Result<void> expect_host(SSL* session, TlsTarget const& target);
[[nodiscard]] Result<void> check_fingerprint(SSL const* session, TlsTarget const& target);

// What the certificate check said, for an error's detail: "self-signed certificate".
[[nodiscard]] std::string verify_text(SSL const* session);
// OpenSSL's own oldest queued error as text; the queue is emptied.
[[nodiscard]] std::string take_ssl_error();

}  // namespace vfmgr::http
