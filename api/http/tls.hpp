// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 contexts for server and client, from OpenSSL. Internal to api/http. The caller owns a
// context; any thread.
#pragma once

#include <openssl/ssl.h>

#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/os/handle.hpp"

namespace vfmgr::http {

using Certificate = Handle<X509, X509_free>;
using SslContext = Handle<SSL_CTX, SSL_CTX_free>;

[[nodiscard]] Result<SslContext> server_context(TlsListen const& where);
// Asks each client for a certificate, and ends the handshake of one whose certificate is not for
// client authentication or does not verify.
[[nodiscard]] Result<void> trust_clients(SSL_CTX* context, TlsListen const& where);
// nullopt: the client showed none.
[[nodiscard]] std::optional<PeerCertificate> peer_certificate(SSL const* session);
[[nodiscard]] std::vector<std::string> certificate_names(X509 const* certificate);
[[nodiscard]] Time time_of(ASN1_TIME const* time);
[[nodiscard]] Result<Certificate> load_certificate(std::string const& file);
[[nodiscard]] Result<std::string> fingerprint(X509 const* certificate);
// Whether `trust` accepts the certificate that the client showed; true if it showed none.
[[nodiscard]] bool still_verifies(SSL* session, SSL_CTX* trust);

// Trusts the CA file. With a fingerprint it checks nothing; check_fingerprint() decides after the
// handshake.
[[nodiscard]] Result<SslContext> client_context(TlsTarget const& target);
// Sets the server name indication and, with a CA file, the name that the certificate must hold.
[[nodiscard]] Result<void> expect_host(SSL* session, TlsTarget const& target);
[[nodiscard]] Result<void> check_fingerprint(SSL const* session, TlsTarget const& target);

// Returns the result of the certificate check, for an error's detail: "self-signed certificate".
[[nodiscard]] std::string verify_text(SSL const* session);
// Says that the server refused the client's certificate, if this error of OpenSSL means that.
[[nodiscard]] std::optional<Error> refused_certificate(int ssl_error, std::string const& server);
[[nodiscard]] Error tls_error(Problem problem, std::string detail, std::string remedy);
// Returns OpenSSL's oldest queued error as text, and empties the queue.
[[nodiscard]] std::string take_ssl_error();

}  // namespace vfmgr::http
