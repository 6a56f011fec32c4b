// SPDX-License-Identifier: Apache-2.0
#include "api/http/authority.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <memory>

#include "tests/unit/api/http/tls_harness.hpp"

namespace vfmgr::http {
namespace {

using testing::HasSubstr;
using testing::Not;

// What the program openssl says: its word counts, not ours.
std::string openssl(std::string const& arguments) {
    auto const command = "openssl " + arguments + " 2>&1";
    std::unique_ptr<FILE, decltype(&::pclose)> const pipe(::popen(command.c_str(), "r"), &::pclose);
    std::string text;
    std::array<char, 4096> part{};
    for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe.get())) > 0;)
        text.append(part.data(), size);
    return text;
}

unsigned permissions(std::string const& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
}

std::string whole(std::string const& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

struct FleetAuthority : testing::Test {
    Result<void> issue_for(CertificateRequest const& wanted,
                           Existing existing = Existing::kept) const {
        return issue(ca, wanted, files, existing);
    }
    Folder folder;
    CertificateAuthority ca =
        make_authority(folder.file("ca"), "fleet f1").value_or(CertificateAuthority{});
    IssuedFiles files{folder.file("a.pem"), folder.file("a.key")};
    CertificateRequest request{.common_name = "vfmgr-fleetd",
                               .uris = {"vfmgr://f1/replica/r1"},
                               .names = {"r1.example", "10.0.0.1", "fd00::1"},
                               .for_servers = true,
                               .for_clients = true,
                               .lasts = std::chrono::days(30)};
};

TEST_F(FleetAuthority, IsACaThatSignsNoOther) {
    ca = make_authority(folder.file("ca"), "fleet-f1").value();
    EXPECT_EQ(permissions(folder.file("ca")), 0700U);
    EXPECT_EQ(permissions(ca.key_file), 0600U);
    EXPECT_EQ(permissions(ca.certificate_file), 0644U);
    auto const text = openssl("x509 -noout -text -in " + ca.certificate_file);
    EXPECT_THAT(text, HasSubstr("CN = fleet-f1"));
    EXPECT_THAT(text, HasSubstr("X509v3 Basic Constraints: critical\n                CA:TRUE, "
                                "pathlen:0"));
    EXPECT_THAT(text, HasSubstr("X509v3 Key Usage: critical\n                Certificate Sign, CRL "
                                "Sign"));
    EXPECT_THAT(text, HasSubstr("ASN1 OID: prime256v1"));
    EXPECT_THAT(
        openssl("verify -x509_strict -CAfile " + ca.certificate_file + " " + ca.certificate_file),
        HasSubstr(": OK"));
}

TEST_F(FleetAuthority, ANameThatCantBePrintedIsRefused) {
    EXPECT_TRUE(ca.key_file.empty()) << "'fleet f1' has a space";
    EXPECT_FALSE(std::filesystem::exists(folder.file("ca")));
}

TEST_F(FleetAuthority, IsNeverOverwritten) {
    ca = make_authority(folder.file("ca"), "f1").value();
    auto const key = whole(ca.key_file);
    auto const again = make_authority(folder.file("ca"), "f1");
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().problem, Problem::conflict);
    std::filesystem::remove(ca.certificate_file);
    EXPECT_TRUE(make_authority(folder.file("ca"), "f1")) << "a crash came before the certificate";
    EXPECT_EQ(whole(ca.key_file), key);
    auto const nowhere = make_authority(folder.file("a/b"), "f1");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().causes.front().code, "ENOENT");
}

TEST_F(FleetAuthority, WhatItSignsVerifiesForItsUsesAndNames) {
    ca = make_authority(folder.file("ca"), "f1").value();
    auto const issued = issue_for(request);
    ASSERT_TRUE(issued) << issued.error().detail;
    EXPECT_EQ(permissions(files.key_file), 0600U);
    auto const verify = [&](std::string const& with) {
        return openssl("verify -x509_strict -CAfile " + ca.certificate_file + " " + with + " " +
                       files.certificate_file);
    };
    for (auto const* fits :
         {"-purpose sslserver", "-purpose sslclient", "-verify_hostname r1.example",
          "-verify_ip 10.0.0.1", "-verify_ip fd00::1"})
        EXPECT_THAT(verify(fits), HasSubstr(": OK")) << fits;
    EXPECT_THAT(verify("-verify_hostname r2.example"), HasSubstr("hostname mismatch"));
    auto const text = openssl("x509 -noout -text -in " + files.certificate_file);
    EXPECT_THAT(text, HasSubstr("CN = vfmgr-fleetd"));
    EXPECT_THAT(text, HasSubstr("URI:vfmgr://f1/replica/r1, DNS:r1.example"));
    EXPECT_THAT(text, HasSubstr("TLS Web Server Authentication, TLS Web Client Authentication"));
    EXPECT_THAT(text, HasSubstr("CA:FALSE"));
    EXPECT_THAT(text, HasSubstr("X509v3 Key Usage: critical\n                Digital Signature\n"));
    EXPECT_THAT(openssl("x509 -noout -checkend 2500000 -in " + files.certificate_file),
                HasSubstr("will not expire"));
    EXPECT_THAT(openssl("x509 -noout -checkend 2600000 -in " + files.certificate_file),
                HasSubstr("will expire"));
    EXPECT_TRUE(whole(files.certificate_file).ends_with(whole(ca.certificate_file)))
        << "a joining host reads the CA from the chain";
}

TEST_F(FleetAuthority, OneUseIsNotTheOther) {
    ca = make_authority(folder.file("ca"), "f1").value();
    request.for_servers = false;
    ASSERT_TRUE(issue_for(request));
    auto const verify = "verify -CAfile " + ca.certificate_file + " -purpose sslserver ";
    EXPECT_THAT(openssl(verify + files.certificate_file), Not(HasSubstr(": OK")));
}

TEST_F(FleetAuthority, ARenewalKeepsTheKeyAndSoItsPin) {
    ca = make_authority(folder.file("ca"), "f1").value();
    ASSERT_TRUE(issue_for(request));
    auto const before = read_certificate(files.certificate_file).value();
    auto const again = issue_for(request);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().problem, Problem::conflict);
    ASSERT_TRUE(issue_for(request, Existing::replaced));
    auto const after = read_certificate(files.certificate_file).value();
    EXPECT_EQ(after.public_key, before.public_key);
    EXPECT_NE(after.fingerprint, before.fingerprint);
    EXPECT_FALSE(after.made_here) << "a daemon does not replace it by one of its own";
}

TEST_F(FleetAuthority, WhatCantBeSignedIsRefusedBeforeAnythingIsWritten) {
    ca = make_authority(folder.file("ca"), "f1").value();
    auto const refusal = [&](auto change) {
        auto wrong = request;
        change(wrong);
        auto const issued = issue_for(wrong);
        EXPECT_FALSE(std::filesystem::exists(files.certificate_file));
        return issued ? std::string() : issued.error().detail;
    };
    EXPECT_EQ(refusal([](auto& r) { r.common_name = ""; }),
              "'' can't be a certificate's common name");
    EXPECT_EQ(refusal([](auto& r) { r.uris = {"vfmgr://a,DNS:b"}; }),
              "'vfmgr://a,DNS:b' is not a URI");
    EXPECT_EQ(refusal([](auto& r) { r.names = {"a,URI:x:y"}; }),
              "'a,URI:x:y' is neither a host name nor an IP address");
    EXPECT_EQ(refusal([](auto& r) { r.for_servers = r.for_clients = false; }),
              "the certificate of vfmgr-fleetd would be for neither servers nor clients");
    EXPECT_EQ(refusal([](auto& r) { r.lasts = std::chrono::days(0); }),
              "a certificate can't last 0 days");
    auto const other = make_authority(folder.file("other"), "f2").value();
    auto const mixed = issue({ca.certificate_file, other.key_file}, request, files);
    ASSERT_FALSE(mixed);
    EXPECT_THAT(mixed.error().detail, HasSubstr("does not belong to the CA"));
    auto const gone = issue({ca.certificate_file, folder.file("none")}, request, files);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().detail,
              "can't open the key " + folder.file("none") + ": No such file or directory");
}

}  // namespace
}  // namespace vfmgr::http
