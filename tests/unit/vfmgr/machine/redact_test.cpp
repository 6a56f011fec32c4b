// SPDX-License-Identifier: Apache-2.0
// Secrets that must not leak, in every format that a bundle holds. In the corpus each secret is
// made of words with "xyzzy", or is a WireGuard key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/redact.hpp"

namespace vfmgr::checks {
namespace {

using testing::HasSubstr;
using testing::Not;

class Corpus : public testing::TestWithParam<char const*> {};

TEST_P(Corpus, DoesNotComeOut) {
    auto const out = redact(GetParam());
    EXPECT_THAT(out, Not(HasSubstr("xyzzy")));
    EXPECT_THAT(out, Not(HasSubstr("4GgaQCy6")));
    EXPECT_EQ(redact(out), out);
}

INSTANTIATE_TEST_SUITE_P(
    Ini, Corpus,
    testing::Values("[WireGuard]\nPrivateKey=4GgaQCy68nzNsUE5aJ9fuLzHhB65tAlwbmA72MWnOm8=\n",
                    "[WireGuardPeer]\nPresharedKey = xyzzy\nPublicKey=a\n",
                    "[wifi-security]\nkey-mgmt=wpa-psk\npsk=xyzzy one xyzzy two\n",
                    "[wifi-security]\nwep-key0=xyzzy\nleap-password=xyzzy\n",
                    "[wireguard-peer.AbC=]\npreshared-key=xyzzy\nallowed-ips=10.0.0.0/8;\n",
                    "[802-1x]\nprivate-key-password=xyzzy a\npassword-raw=xyzzy\n",
                    "[vpn-secrets]\nanything=xyzzy xyzzy\nmore=xyzzy\n[ipv4]\nmethod=auto\n",
                    "[gsm]\npin=xyzzy\n[macsec]\nmka-cak=xyzzy\n", "psk=\"xyzzy\" xyzzy\n",
                    "#password = xyzzy xyzzy\n", "; api-key: xyzzy xyzzy\n",
                    "password=xyzzy\\\nxyzzy\n", "SetCredential=id:xyzzy xyzzy\n",
                    "rocommunity = xyzzy\n", "password=xyzzy\r\nmtu=1\r\n"));

INSTANTIATE_TEST_SUITE_P(
    Yaml, Corpus,
    testing::Values(
        "tunnels:\n  wg0:\n    key: 4GgaQCy68nzNsUE5aJ9fuLzHhB65tAlwbmA72MWnOm8=\n    port: 1\n",
        "    key:\n      private: xyzzy\n    port: 1\n",
        "    peers:\n    - keys:\n        public: a\n        shared: xyzzy\n      endpoint: b\n",
        "    - keys: {public: a, shared: xyzzy}\n", "  a: {mtu: 1, keys: {shared: xyzzy b}}\n",
        "access-points:\n  home:\n    password: \"xyzzy \\\" xyzzy\"\n",
        "  home: {password: 'xyzzy ''xyzzy', mtu: 1}\n", "  password: xyzzy # xyzzy\n",
        "  private: xyzzy\n", "password: |\n  xyzzy\n\n  xyzzy\nmtu: 1\n", "secret: >-\n  xyzzy\n",
        "tokens:\n- xyzzy\n- xyzzy\nmtu: 1\n", "client-key-data: xyzzy\n",
        "# \xc3\xbc\npassword: xyzzy\n"));

INSTANTIATE_TEST_SUITE_P(
    Json, Corpus,
    testing::Values(R"({"password":"xyzzy","mtu":1})", R"({"api_key" : "xyzzy \" xyzzy"})",
                    "{\n \"secrets\": {\n  \"a\": \"xyzzy\",\n  \"b\": {\"c\": \"xyzzy\"}\n }\n}",
                    R"("{\"token\": \"xyzzy\", \"mtu\": 1}")", R"({"keys": ["xyzzy", "xyzzy b"]})",
                    R"({"qom-type":"secret","id":"a","data":"xyzzy"})",
                    R"({"clientSecret": 'xyzzy a'})"));

INSTANTIATE_TEST_SUITE_P(Xml, Corpus,
                         testing::Values("<graphics type='vnc' passwd='xyzzy xyzzy'/>",
                                         "<password>xyzzy a</password>",
                                         "<secret type=\"plain\">\n  xyzzy b\n</secret>",
                                         "<a><Password type='x y'>xyzzy a</Password></a>",
                                         "<key>xyzzy</key>"));

INSTANTIATE_TEST_SUITE_P(
    Lines, Corpus,
    testing::Values("curl -u me:xyzzy https://h/", "curl --user 'me:xyzzy' h",
                    "wget --password=xyzzy h", "x --token xyzzy", "x --api-key 'xyzzy xyzzy' y",
                    "sshpass -p xyzzy ssh h", "curl -H 'Authorization: Bearer xyzzy' h",
                    "curl -H \"X-Auth-Token: xyzzy xyzzy\" h", "Authorization: Basic xyzzy xyzzy",
                    "qemu -object secret,id=s0,data=xyzzy -m 1", "-spice port=1,password=xyzzy",
                    "Environment=\"API_KEY=xyzzy xyzzy\" \"A=b\"\n", "export DB_PASS=xyzzy xyzzy\n",
                    "MYSQL_PWD=xyzzy mysql", "wpa-psk xyzzy\n",
                    "  wireless-key s:xyzzy\n  wpa-psk a", "machine h login me password xyzzy",
                    "TOKEN='xyzzy\nxyzzy'\n", "token = \"\"\"xyzzy\nxyzzy\"\"\"\n",
                    "Cookie: a=xyzzy; b=xyzzy", "quiet rd.luks.key=xyzzy a",
                    "config[\"password\"] = \"xyzzy\";"));

INSTANTIATE_TEST_SUITE_P(
    WordsAndForms, Corpus,
    testing::Values("  private key: xyzzy\n  preshared key: xyzzy\n",
                    "wg0\t4GgaQCy68nzNsUE5aJ9fuLzHhB65tAlwbmA72MWnOm8=\t(none)\t51820\n",
                    "https://me:xyzzy@h/x", "https://xyzzy@h/", "x=postgres://me:xyzzy/xyzzy@h:1/d",
                    "socks5h://me:xyzzy@@h",
                    "-----BEGIN PRIVATE KEY-----\nxyzzy\nxyzzy\n"
                    "-----END PRIVATE KEY-----\n",
                    "-----BEGIN OpenVPN Static key V1-----\nxyzzy\n",
                    "a ghp_xyzzyxyzzyxyzzyxyzzyxyzzyxyzzy b", "eyJxyzzyxyzzyxyzzy.eyJxyzzy.xyzzy"));

TEST(Redact, KeepsTheRest) {
    for (auto const* const text :
         {"[Match]\nName=ens1\n[Link]\nMTUBytes=9000\n", "KeyringMode=private\nPrivateTmp=yes\n",
          "wg0:\n  key-mgmt: none\n  mtu: 9000\n", "mlx5: lkey 0x1234 rkey=0x5 P_Key: 0xffff",
          "max_pkeys: 128\nqkey=0x80010000", "https://h:8470/v1/@me", "ssh://git@h/x",
          "qemu+ssh://root@h/system", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
          "memory-backend-file,shared=on", "<access mode='shared'/>", "bypass=1", "-u root",
          "key: true"})
        EXPECT_EQ(redact(text), text);
    EXPECT_EQ(redact("    peers:\n    - keys:\n        shared: a\n      endpoint: b\n"),
              "    peers:\n    - keys: (removed)\n      endpoint: b\n");
    EXPECT_EQ(redact(R"({"password":"a","mtu":1})"), R"({"password":(removed),"mtu":1})");
    EXPECT_EQ(redact("[vpn-secrets]\na=b\n[ipv4]\nmethod=auto\n"),
              "[vpn-secrets]\na=(removed)\n[ipv4]\nmethod=auto\n");
    EXPECT_EQ(redact("https://me:a@h/x"), "https://(removed)@h/x");
}

TEST(Redact, LooksIntoWhatABundleWritesInHexadecimal) {
    Facts facts;
    facts.files["/etc/netplan/a.yaml"] = {"# \xc3\xbc\n  password: xyzzy\n", 0};
    facts.files["/proc/7/environ"] = {std::string("A=b\0TOKEN=xyzzy a\0C=d\0", 22), 0};
    facts.commands["a"] = {"", std::string("\x1b token=xyzzy"), 0, 0};
    auto const clean = without_secrets(facts);
    EXPECT_EQ(clean.files.at("/etc/netplan/a.yaml").bytes, "# \xc3\xbc\n  password: (removed)\n");
    EXPECT_EQ(clean.files.at("/proc/7/environ").bytes,
              std::string("A=b\0TOKEN=(removed)\0C=d\0", 24));
    EXPECT_EQ(clean.commands.at("a").err, "\x1b token=(removed)");
}

TEST(SecretNames, AreKnownInEverySpelling) {
    for (auto const* const name : {"password", "dbPassword", "API-KEY", "apiKey", "PresharedKey",
                                   "psk1", "wpa_passphrase", "accessToken"})
        EXPECT_NE(secrecy_of(name), Secrecy::none) << name;
    for (auto const* const name : {"key", "Keys", "wep-key3", "encryptionkey", "client-key-data",
                                   "MYSQL_PWD", "dbPass", "pin", "ssh_host_key"})
        EXPECT_EQ(secrecy_of(name), Secrecy::labelled) << name;
    for (auto const* const name : {"lkey", "r_key", "pkeys", "max_pkeys", "key-mgmt", "keymap",
                                   "compass", "PrivateTmp", "", "0", "pkey0", "MKEY"})
        EXPECT_EQ(secrecy_of(name), Secrecy::none) << name;
}

}  // namespace
}  // namespace vfmgr::checks
