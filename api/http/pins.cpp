// SPDX-License-Identifier: Apache-2.0
// What a client knows of a server beforehand, other than the CAs that it trusts.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>

#include "api/http/tls.hpp"
#include "api/types/addresses.hpp"

namespace vfmgr::http {
namespace {

// "AB:CD:…", as openssl prints a digest, equals our "abcd…".
std::string plain_hex(std::string_view text) {
    std::string out;
    for (char c : text)
        if (c != ':') out += (c >= 'A' && c <= 'F') ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

Result<void> check_form(std::string const& pin, std::string_view what, std::string_view where) {
    auto const plain = plain_hex(pin);
    if (pin.empty() ||
        (plain.size() == 64 && plain.find_first_not_of("0123456789abcdef") == std::string::npos))
        return {};
    return fail(Problem::invalid_request, fmt::format("'{}' is not a SHA-256 {}", pin, what),
                fmt::format("give 64 hexadecimal digits, {}", where));
}

std::string named(TlsTarget const& target) {
    return fmt::format("{} port {}", target.host, target.port);
}

Result<Certificate> shown_by(SSL const* session, TlsTarget const& target) {
    Certificate certificate(SSL_get1_peer_certificate(session));
    if (certificate) return certificate;
    return fail(Problem::unavailable, fmt::format("{} showed no certificate", target.host),
                "check that the port is vfmgrd's");
}

Result<void> check_fingerprint(X509 const* shown, TlsTarget const& target) {
    if (target.fingerprint.empty()) return {};
    VFMGR_TRY(std::string const found, fingerprint(shown));
    auto const expected = plain_hex(target.fingerprint);
    if (found == expected) return {};
    return fail(Problem::unavailable,
                fmt::format("{} showed a certificate with SHA-256 {}, not the expected {}",
                            named(target), found, expected),
                "compare with the fingerprint that vfmgrd printed on that host; if it was not "
                "renewed there, another machine is in between");
}

Result<void> check_public_key(X509 const* shown, TlsTarget const& target) {
    if (target.public_key.empty()) return {};
    VFMGR_TRY(std::string const found, public_key(shown));
    auto const expected = plain_hex(target.public_key);
    if (found == expected) return {};
    return fail(Problem::unavailable,
                fmt::format("{} showed a certificate whose key has SHA-256 {}, not the expected {}",
                            named(target), found, expected),
                "if that machine got a new key, have it join again; otherwise another machine "
                "answers at its address");
}

// The chain as the server sent it, its own certificate first.
Result<Certificate> sent_with(std::string const& digest, SSL const* session,
                              TlsTarget const& target) {
    STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(session);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
        X509* const one = sk_X509_value(chain, i);
        VFMGR_TRY(std::string const found, fingerprint(one));
        if (found != digest) continue;
        X509_up_ref(one);
        return Certificate(one);
    }
    return fail(
        Problem::unavailable,
        fmt::format("{} did not send the CA certificate with SHA-256 {}", named(target), digest),
        "check the address and whether the CA was replaced since this hash was given; the "
        "server's certificate_file must hold its chain and the CA's certificate");
}

tl::unexpected<Error> not_signed(TlsTarget const& target, std::string const& why) {
    return fail(Problem::unavailable,
                fmt::format("the CA with SHA-256 {} has not signed the certificate that {} showed "
                            "for this name: {}",
                            plain_hex(target.ca_sha256), named(target), why),
                "reach the server by a name or address that is in its certificate; if it is, "
                "another machine is in between");
}

// Trusts this one CA for this one connection.
Result<void> check_signed_by(X509* ca, X509* shown, SSL const* session, TlsTarget const& target) {
    Handle<X509_STORE, X509_STORE_free> const only(X509_STORE_new());
    Handle<X509_STORE_CTX, X509_STORE_CTX_free> const verification(X509_STORE_CTX_new());
    if (!only || !verification || X509_STORE_add_cert(only.get(), ca) != 1 ||
        // The CA may be an intermediate one: its hash says that it is meant.
        X509_STORE_set_flags(only.get(), X509_V_FLAG_PARTIAL_CHAIN) != 1 ||
        X509_STORE_CTX_init(verification.get(), only.get(), shown,
                            SSL_get_peer_cert_chain(session)) != 1 ||
        X509_STORE_CTX_set_default(verification.get(), "ssl_server") != 1)
        return fail(tls_error(Problem::internal, "OpenSSL can't check a certificate",
                              "check the host's OpenSSL and its policy"));
    auto* const wanted = X509_STORE_CTX_get0_param(verification.get());
    int const fits = IpAddress::parse(target.host)
                         ? X509_VERIFY_PARAM_set1_ip_asc(wanted, target.host.c_str())
                         : X509_VERIFY_PARAM_set1_host(wanted, target.host.c_str(), 0);
    if (fits != 1) return not_signed(target, "this can't be a host name");
    if (X509_verify_cert(verification.get()) == 1) return {};
    return not_signed(target,
                      X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification.get())));
}

}  // namespace

Result<void> check_form_of_pins(TlsTarget const& target) {
    if (target.ca_file.empty() && target.fingerprint.empty() && target.public_key.empty() &&
        target.ca_sha256.empty())
        return fail(
            Problem::invalid_request,
            fmt::format("neither a CA file nor a fingerprint is given to check {}", target.host),
            "give a CA file or the certificate's SHA-256 fingerprint");
    VFMGR_CHECK(check_form(target.fingerprint, "fingerprint", "as vfmgrd prints them at start"));
    VFMGR_CHECK(
        check_form(target.public_key, "digest of a public key", "as the fleet stores them"));
    return check_form(target.ca_sha256, "digest of a CA certificate", "as a join token ends with");
}

Result<void> check_pins(SSL* session, TlsTarget const& target) {
    VFMGR_TRY(Certificate const shown, shown_by(session, target));
    VFMGR_CHECK(check_fingerprint(shown.get(), target));
    VFMGR_CHECK(check_public_key(shown.get(), target));
    if (target.ca_sha256.empty()) return {};
    VFMGR_TRY(Certificate const ca, pinned_ca(session, target));
    return {};
}

Result<Certificate> pinned_ca(SSL* session, TlsTarget const& target) {
    if (target.ca_sha256.empty())
        return fail(Problem::invalid_request,
                    fmt::format("no SHA-256 of the CA of {} is given", target.host),
                    "give the join token, which ends with it");
    VFMGR_TRY(Certificate const shown, shown_by(session, target));
    VFMGR_TRY(Certificate ca, sent_with(plain_hex(target.ca_sha256), session, target));
    if (X509_check_ca(ca.get()) != 1) return not_signed(target, "it is no CA's certificate");
    VFMGR_CHECK(check_signed_by(ca.get(), shown.get(), session, target));
    return ca;
}

Result<std::string> public_key(X509 const* certificate) {
    unsigned char* der = nullptr;
    int const size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned digest_size = 0;
    bool const done = size > 0 && EVP_Digest(der, static_cast<std::size_t>(size), digest.data(),
                                             &digest_size, EVP_sha256(), nullptr) == 1;
    OPENSSL_free(der);
    if (!done)
        return fail(tls_error(Problem::internal, "OpenSSL can't compute SHA-256",
                              "check the host's OpenSSL and its policy"));
    return hex(digest.data(), digest_size);
}

Result<std::string> public_key_of(std::string const& certificate_file) {
    VFMGR_TRY(Certificate const certificate, load_certificate(certificate_file));
    return public_key(certificate.get());
}

}  // namespace vfmgr::http
