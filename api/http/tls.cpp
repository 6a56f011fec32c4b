// SPDX-License-Identifier: Apache-2.0
#include "api/http/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <array>
#include <cstdio>

#include "api/types/addresses.hpp"

namespace vfmgr::http {
namespace {

using File = Handle<std::FILE, std::fclose>;

Result<SslContext> new_context(SSL_METHOD const* method) {
    ERR_clear_error();
    SslContext context(SSL_CTX_new(method));
    if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1)
        return fail(tls_error(Problem::internal, "OpenSSL can't do TLS 1.3",
                              "check the host's OpenSSL and its policy"));
    return context;
}

Result<void> use_certificate(SSL_CTX* context, std::string const& certificate_file,
                             std::string const& key_file) {
    if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1)
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("can't load the certificate {}", certificate_file),
                              "give a PEM file with the certificate, then its chain"));
    if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return fail(tls_error(
            Problem::invalid_request,
            fmt::format("can't use the key {} with the certificate {}", key_file, certificate_file),
            "give the unencrypted PEM key that belongs to the certificate"));
    return {};
}

}  // namespace

Error tls_error(Problem problem, std::string detail, std::string remedy) {
    Error error{problem, std::move(detail), std::move(remedy)};
    if (auto text = take_ssl_error(); !text.empty())
        error.causes.push_back({"OpenSSL", {}, std::move(text)});
    return error;
}

std::string hex(unsigned char const* octets, unsigned size) {
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", octets[i]);
    return text;
}

std::string take_ssl_error() {
    auto const code = ERR_get_error();
    ERR_clear_error();
    if (code == 0) return {};
    std::array<char, 256> text{};
    ERR_error_string_n(code, text.data(), text.size());
    return text.data();
}

Result<SslContext> server_context(TlsListen const& where) {
    VFMGR_TRY(SslContext context, new_context(TLS_server_method()));
    VFMGR_CHECK(use_certificate(context.get(), where.certificate_file, where.key_file));
    VFMGR_CHECK(trust_clients(context.get(), where));
    SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
    // No session tickets: there is nothing to resume and no ticket key to rotate.
    SSL_CTX_set_num_tickets(context.get(), 0);
    return context;
}

Result<void> check_certificate(TlsListen const& where) {
    VFMGR_TRY(SslContext const context, new_context(TLS_server_method()));
    if (!where.certificate_file.empty())
        VFMGR_CHECK(use_certificate(context.get(), where.certificate_file, where.key_file));
    return trust_clients(context.get(), where);
}

Result<SslContext> client_context(TlsTarget const& target) {
    VFMGR_CHECK(check_form_of_pins(target));
    if (target.certificate_file.empty() != target.key_file.empty())
        return fail(Problem::invalid_request,
                    "a client certificate needs its key, and the key its certificate",
                    "name both files, or neither");
    VFMGR_TRY(SslContext context, new_context(TLS_client_method()));
    if (!target.certificate_file.empty())
        VFMGR_CHECK(use_certificate(context.get(), target.certificate_file, target.key_file));
    if (target.ca_file.empty()) return context;
    if (SSL_CTX_load_verify_file(context.get(), target.ca_file.c_str()) != 1)
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("can't load the CA file {}", target.ca_file),
                              "give a readable PEM file"));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    return context;
}

Result<void> expect_host(SSL* session, TlsTarget const& target) {
    bool const address = IpAddress::parse(target.host).has_value();
    bool fits = true;
    // Expands SSL_set_tlsext_host_name(); the macro itself uses an old-style cast.
    if (!address)
        fits = SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                        const_cast<char*>(target.host.c_str())) == 1;
    if (!target.ca_file.empty() && address)
        fits = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), target.host.c_str()) == 1;
    else if (!target.ca_file.empty())
        fits = fits && SSL_set1_host(session, target.host.c_str()) == 1;
    if (fits) return {};
    return fail(tls_error(Problem::invalid_request,
                          fmt::format("'{}' can't be a host name", target.host),
                          "give a host name or an IP address"));
}

// A client that checks a pin alone has OpenSSL verify, too, and does not mind the result.
std::string verify_text(SSL const* session) {
    if (SSL_get_verify_mode(session) == SSL_VERIFY_NONE) return {};
    auto const result = SSL_get_verify_result(session);
    return result == X509_V_OK ? std::string{} : X509_verify_cert_error_string(result);
}

Result<std::string> fingerprint(X509 const* certificate) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1)
        return fail(tls_error(Problem::internal, "OpenSSL can't compute SHA-256",
                              "check the host's OpenSSL and its policy"));
    return hex(digest.data(), size);
}

Result<Certificate> load_certificate(std::string const& certificate_file) {
    ERR_clear_error();
    File const file(std::fopen(certificate_file.c_str(), "re"));
    if (!file)
        return fail(Problem::not_found, fmt::format("can't open {}", certificate_file),
                    "give a readable PEM file");
    Certificate certificate(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
    if (!certificate)
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("{} holds no certificate", certificate_file),
                              "give a PEM file that begins with the certificate"));
    return certificate;
}

Result<std::string> pem_of(X509* certificate) {
    Handle<BIO, BIO_free> const memory(BIO_new(BIO_s_mem()));
    if (!memory || PEM_write_bio_X509(memory.get(), certificate) != 1)
        return fail(tls_error(Problem::internal, "OpenSSL can't write a certificate",
                              "check the host's OpenSSL and its policy"));
    char* text = nullptr;
    auto const size = BIO_get_mem_data(memory.get(), &text);
    return std::string(text, static_cast<std::size_t>(size));
}

Result<std::string> certificate_fingerprint(std::string const& certificate_file) {
    VFMGR_TRY(Certificate const certificate, load_certificate(certificate_file));
    return fingerprint(certificate.get());
}

}  // namespace vfmgr::http
