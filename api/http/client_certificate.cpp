// SPDX-License-Identifier: Apache-2.0
// Certificates of clients: what a server reads from them, and how a client learns that its own was
// refused.
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
