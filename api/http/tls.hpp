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
[[nodiscard]] Result<std::string> pem_of(X509* certificate);
// SHA-256 of its SubjectPublicKeyInfo (DER), hex.
[[nodiscard]] Result<std::string> public_key(X509 const* certificate);
// Whether `trust` accepts the certificate that the client showed, by the CA that it was accepted by
// in the handshake; true if it showed none. False before it could.
[[nodiscard]] bool still_verifies(SSL* session, SSL_CTX* trust);

// Trusts the CA file. It does not check the pins; check_pins() decides after the handshake.
[[nodiscard]] Result<SslContext> client_context(TlsTarget const& target);
// Sets the server name indication and, with a CA file, the name that the certificate must hold.
[[nodiscard]] Result<void> expect_host(SSL* session, TlsTarget const& target);
// Checks the form of the target's pins, for what can't fit any certificate.
[[nodiscard]] Result<void> check_form_of_pins(TlsTarget const& target);
// Checks the target's pins, after a handshake and before anything is sent.
[[nodiscard]] Result<void> check_pins(SSL* session, TlsTarget const& target);
// The certificate in the server's chain that has the target's ca_sha256. Checks that it is a CA's
// and has signed the server's certificate for the target's host.
[[nodiscard]] Result<Certificate> pinned_ca(SSL* session, TlsTarget const& target);

// Returns the result of the certificate check, for an error's detail: "self-signed certificate".
[[nodiscard]] std::string verify_text(SSL const* session);
// Says that the server refused the client's certificate, if this error of OpenSSL means that.
[[nodiscard]] std::optional<Error> refused_certificate(int ssl_error, std::string const& server);
[[nodiscard]] Error tls_error(Problem problem, std::string detail, std::string remedy);
// Returns OpenSSL's oldest queued error as text, and empties the queue.
[[nodiscard]] std::string take_ssl_error();
[[nodiscard]] std::string hex(unsigned char const* octets, unsigned size);

}  // namespace vfmgr::http
