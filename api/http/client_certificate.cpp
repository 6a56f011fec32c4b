// SPDX-License-Identifier: Apache-2.0
// Certificates of clients: which ones a server accepts, what it reads from them, and how a client
// learns that its own was refused.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "api/http/tls.hpp"

namespace vfmgr::http {
namespace {

using Names = Handle<GENERAL_NAMES, GENERAL_NAMES_free>;

constexpr std::size_t name_characters_max = 255;

// OpenSSL takes a certificate without an extended key usage for any purpose.
int demand_client_use(int verified, X509_STORE_CTX* verification) {
    if (verified != 1 || X509_STORE_CTX_get_error_depth(verification) != 0) return verified;
    X509* const shown = X509_STORE_CTX_get_current_cert(verification);
    bool const limited = (X509_get_extension_flags(shown) & EXFLAG_XKUSAGE) != 0;
    if (limited && (X509_get_extended_key_usage(shown) & XKU_SSL_CLIENT) != 0) return 1;
    X509_STORE_CTX_set_error(verification, X509_V_ERR_INVALID_PURPOSE);
    return 0;
}

Result<void> check_revocation(X509_STORE* store, std::string const& crl_file) {
    X509_LOOKUP* const lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, crl_file.c_str(), X509_FILETYPE_PEM) < 1)
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("can't load the revocation lists in {}", crl_file),
                              "give a PEM file with a list of each CA"));
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return {};
}

std::string text_of(ASN1_STRING const* value) {
    unsigned char* text = nullptr;
    int const size = ASN1_STRING_to_UTF8(&text, value);
    if (size < 0) return {};
    std::string copy(reinterpret_cast<char const*>(text), static_cast<std::size_t>(size));
    OPENSSL_free(text);
    return copy;
}

void add(std::vector<std::string>& names, ASN1_STRING const* value) {
    auto name = text_of(value);
    if (valid_certificate_name(name)) names.push_back(std::move(name));
}

// nullopt: there is none of that kind.
std::optional<std::vector<std::string>> names_of_kind(GENERAL_NAMES const* all, int kind) {
    std::optional<std::vector<std::string>> names;
    for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
        int found = 0;
        auto const* const value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all, i), &found);
        if (found != kind) continue;
        if (!names) names.emplace();
        add(*names, static_cast<ASN1_STRING const*>(value));
    }
    return names;
}

// None if there are several: which of them should count would be a guess.
std::vector<std::string> common_name(X509 const* certificate) {
    X509_NAME const* const subject = X509_get_subject_name(certificate);
    int const first = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    std::vector<std::string> names;
    if (first >= 0 && X509_NAME_get_index_by_NID(subject, NID_commonName, first) < 0)
        add(names, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, first)));
    return names;
}

}  // namespace

Time time_of(ASN1_TIME const* time) {
    std::tm parts{};
    if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
    return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

bool valid_certificate_name(std::string_view name) {
    auto const visible = [](char c) { return c > ' ' && c < 0x7f; };
    return !name.empty() && name.size() <= name_characters_max &&
           std::ranges::all_of(name, visible);
}

Result<void> trust_clients(SSL_CTX* context, TlsListen const& where) {
    if (where.client_ca_file.empty()) return {};
    ERR_clear_error();
    auto* const accepted = SSL_load_client_CA_file(where.client_ca_file.c_str());
    if (!accepted || SSL_CTX_load_verify_file(context, where.client_ca_file.c_str()) != 1) {
        sk_X509_NAME_pop_free(accepted, X509_NAME_free);
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("can't load the client CAs in {}", where.client_ca_file),
                              "give a PEM file with the CA's certificate"));
    }
    // Sent to clients: one with several certificates then knows which to show.
    SSL_CTX_set_client_CA_list(context, accepted);
    X509_STORE* const store = SSL_CTX_get_cert_store(context);
    // An intermediate CA in the file is trusted for itself; its root may have signed others.
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    if (!where.client_crl_file.empty()) VFMGR_CHECK(check_revocation(store, where.client_crl_file));
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, demand_client_use);
    return {};
}

std::vector<std::string> certificate_names(X509 const* certificate) {
    int critical = 0;
    Names const all(static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, &critical, nullptr)));
    constexpr int absent = -1;
    if (!all) return critical == absent ? common_name(certificate) : std::vector<std::string>{};
    for (int const kind : {GEN_URI, GEN_DNS})
        if (auto names = names_of_kind(all.get(), kind)) return std::move(*names);
    return common_name(certificate);
}

std::optional<PeerCertificate> peer_certificate(SSL const* session) {
    Certificate const shown(SSL_get1_peer_certificate(session));
    if (!shown) return std::nullopt;
    return PeerCertificate{certificate_names(shown.get()),
                           time_of(X509_get0_notAfter(shown.get()))};
}

bool still_verifies(SSL* session, SSL_CTX* trust) {
    Certificate const shown(SSL_get1_peer_certificate(session));
    if (!shown) return true;
    Handle<X509_STORE_CTX, X509_STORE_CTX_free> const verification(X509_STORE_CTX_new());
    // As OpenSSL does it in a handshake.
    if (!verification ||
        X509_STORE_CTX_init(verification.get(), SSL_CTX_get_cert_store(trust), shown.get(),
                            SSL_get_peer_cert_chain(session)) != 1 ||
        X509_STORE_CTX_set_default(verification.get(), "ssl_client") != 1)
        return false;
    X509_STORE_CTX_set_verify_cb(verification.get(), demand_client_use);
    return X509_verify_cert(verification.get()) == 1;
}

// With TLS 1.3 a client's handshake ends before the server has verified its certificate, so the
// refusal comes as an alert in place of the answer.
std::optional<Error> refused_certificate(int ssl_error, std::string const& server) {
    constexpr std::array alerts{
        SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,     SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
        SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
        SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, SSL_R_TLSV1_ALERT_UNKNOWN_CA};
    auto const code = static_cast<unsigned long>(static_cast<unsigned>(ssl_error));
    if (std::ranges::find(alerts, ERR_GET_REASON(code)) == alerts.end()) return std::nullopt;
    Error error{Problem::unauthorized,
                fmt::format("{} does not accept this client certificate", server),
                "show one that a CA in the server's client_ca_file has signed for client "
                "authentication, and that is neither expired nor revoked"};
    if (char const* const reason = ERR_reason_error_string(code))
        error.causes.push_back({"OpenSSL", {}, reason});
    return error;
}

}  // namespace vfmgr::http
