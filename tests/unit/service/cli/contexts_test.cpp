// SPDX-License-Identifier: Apache-2.0
// Hosts by name, and which of them vfctl talks to.
#include "service/cli/contexts.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "service/cli/server.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;

constexpr auto own_file = R"(# the lab's hosts
current = "lab1"  # mine

[contexts.lab1]
address = "https://lab1:8470"
ca_file = "/etc/lab/ca.pem"
token_file = "/home/me/lab1.token"

[contexts.bench]
address = "/run/bench.sock"

[contexts.mutual]
address = "https://lab2"
client_certificate_file = "/home/me/me.pem"
client_key_file = "/home/me/me.key"
)";

Contexts contexts_in(std::string_view text) {
    Contexts contexts;
    auto const added = add_contexts(contexts, "f", text);
    EXPECT_TRUE(added) << added.error().detail;
    return contexts;
}

std::string fault_in(std::string_view text) {
    Contexts contexts;
    auto const added = add_contexts(contexts, "f", text);
    return added ? "none" : added.error().detail;
}

TEST(Contexts, NameAddressesAndFilesOfCredentials) {
    auto const contexts = contexts_in(own_file);
    EXPECT_EQ(contexts.current, "lab1");
    EXPECT_EQ(contexts.by_name.at("lab1"),
              (Context{"https://lab1:8470", {"/etc/lab/ca.pem", "", "/home/me/lab1.token"}, "f"}));
    EXPECT_EQ(contexts.by_name.at("bench").address, "unix:/run/bench.sock");
    EXPECT_EQ(contexts.by_name.at("mutual").credentials,
              (Credentials{"", "", "", "/home/me/me.pem", "/home/me/me.key"}));
    EXPECT_EQ(contexts.by_name.at("local").address, "unix:/run/vfmgr/vfmgr.sock");
    EXPECT_EQ(contexts_in("").by_name.size(), 1U);
}

TEST(Contexts, FaultsAreNamedByLine) {
    EXPECT_EQ(fault_in("a = 1"), "f:1: a is not known");
    EXPECT_EQ(fault_in("current = 1"), "f:1: current must be a string");
    EXPECT_EQ(fault_in("current = \"\""), "f:1: current must be a string");
    EXPECT_EQ(fault_in("contexts = 1"), "f:1: contexts must be a table");
    EXPECT_EQ(fault_in("[contexts]\na = 1"), "f:2: contexts.a must be a table");
    EXPECT_EQ(fault_in("\n[contexts.local]\naddress = \"https://a\""),
              "f:2: 'local' can't be the name of a context");
    for (auto const* const name : {"", "a/b", "a:b", "-a", "a b", "é"})
        EXPECT_THAT(fault_in("[contexts.\"" + std::string(name) + "\"]\naddress = \"https://a\""),
                    HasSubstr("can't be the name of a context"))
            << name;
    EXPECT_THAT(fault_in("[contexts.a]"), HasSubstr("f:1: contexts.a.address: "));
    EXPECT_THAT(fault_in("[contexts.a]\naddress = \"http://a\""), HasSubstr("'http://a'"));
    EXPECT_THAT(fault_in("[contexts.a]\naddress = \"unix:a\""), HasSubstr("begins with /"));
    EXPECT_EQ(fault_in("[contexts.a]\naddress = \"https://a\"\ntoken = \"secret\""),
              "f:3: contexts.a.token is not known");
    EXPECT_EQ(fault_in("[contexts.a]\naddress = \"https://a\"\nca_file = \"ca.pem\""),
              "f:3: contexts.a.ca_file must be a path that begins with /");
    EXPECT_EQ(fault_in("b = 1\na = 1"), "f:1: b is not known") << "the first line first";
    EXPECT_THAT(fault_in("[contexts.a"), HasSubstr("f:1: "));
}

TEST(Contexts, OfTheUserReplaceThoseOfTheSystem) {
    test::TemporaryFolder const folder;
    ContextFiles const files{folder.file("user.toml"), folder.file("system.toml")};
    Contexts own;
    own.by_name[fleet_context] = Context{fleet_address};
    EXPECT_EQ(read_contexts(files).value(), own) << "neither file exists";
    std::ofstream(files.system) << "[contexts.lab1]\naddress = \"https://old\"\n"
                                   "fingerprint = \"ab\"\n"
                                   "[contexts.all]\naddress = \"https://all\"\n";
    std::ofstream(files.user) << own_file;
    auto const both = read_contexts(files).value();
    EXPECT_EQ(both.current, "lab1");
    EXPECT_EQ(both.by_name.at("lab1").address, "https://lab1:8470");
    EXPECT_EQ(both.by_name.at("lab1").credentials.fingerprint, "") << "nothing is mixed";
    EXPECT_EQ(both.by_name.at("all").file, files.system);
    std::ofstream(files.system) << "current = \"all\"\n";
    EXPECT_THAT(read_contexts(files).error().detail, HasSubstr("for everybody"));
    std::filesystem::remove(files.system);
    std::filesystem::create_directory(files.system);
    EXPECT_THAT(read_contexts(files).error().detail, HasSubstr("EISDIR"));
}

TEST(Contexts, TheCurrentOneIsChangedAlone) {
    std::string const text = own_file;
    auto const changed = with_current(text, "bench").value();
    EXPECT_EQ(changed, "# the lab's hosts\ncurrent = \"bench\"\n" +
                           text.substr(text.find("\n[contexts.lab1]")));
    EXPECT_EQ(contexts_in(changed).current, "bench");
    EXPECT_EQ(with_current("", "a").value(), "current = \"a\"\n");
    EXPECT_EQ(with_current("# mine\n[contexts]\n", "a").value(),
              "current = \"a\"\n# mine\n[contexts]\n");
    EXPECT_EQ(with_current("current = \"b\"", "a").value(), "current = \"a\"\n");
    EXPECT_EQ(with_current("#\ncurrent = '''\nb'''\r\n# x\r\n", "a").value(),
              "#\ncurrent = \"a\"\n# x\r\n");
    EXPECT_FALSE(with_current("[contexts", "a"));
}

TEST(Contexts, AreUsedThroughALinkAndInANewFolder) {
    test::TemporaryFolder const folder;
    ContextFiles const files{folder.file("new/vfmgr/contexts.toml"), folder.file("system.toml")};
    EXPECT_EQ(use_context(files, "lab1").error().problem, Problem::invalid_request);
    std::ofstream(files.system) << "[contexts.lab1]\naddress = \"https://lab1\"\n";
    EXPECT_TRUE(use_context(files, "lab1"));
    EXPECT_EQ(read_contexts(files)->current, "lab1");
    EXPECT_TRUE(use_context(files, "local"));
    EXPECT_EQ(read_contexts(files)->current, "local");
    std::filesystem::rename(files.user, folder.file("kept"));
    std::filesystem::create_symlink(folder.file("kept"), files.user);
    EXPECT_TRUE(use_context(files, "lab1"));
    EXPECT_TRUE(std::filesystem::is_symlink(files.user));
    EXPECT_EQ(read_contexts(files)->current, "lab1");
    EXPECT_THAT(use_context({"", files.system}, "lab1").error().remedy, HasSubstr("HOME"));
}

TEST(Address, IsASocketOrHttps) {
    EXPECT_EQ(parse_address("/run/a").value(), "unix:/run/a");
    EXPECT_EQ(parse_address("unix:a").value(), "unix:a");
    EXPECT_EQ(parse_address("https://[::1]:99").value(), "https://[::1]:99");
    for (auto const* const wrong : {"", "unix:", "http://a", "a:8470", "tcp:a"})
        EXPECT_FALSE(parse_address(wrong)) << wrong;
}

ServerChoice choice(std::string host, std::string token_file = {}) {
    return {std::move(host), {{}, {}, std::move(token_file)}};
}

class Choice : public testing::Test {
  protected:
    Server chosen(ServerChoice const& options, ServerChoice const& environment) {
        auto const server = choose_server(options, environment, [this]() -> Result<Contexts> {
            ++asked_;
            return contexts_;
        });
        EXPECT_TRUE(server) << server.error().detail;
        return server.value_or(Server{});
    }
    Contexts contexts_ = contexts_in(R"(
[contexts.a]
address = "https://a"
ca_file = "/ca-a"
token_file = "/token-a"
[contexts.bare]
address = "https://bare"
)");
    int asked_ = 0;
};

TEST_F(Choice, OfTheAddressIsOptionThenEnvironmentThenContextThenSocket) {
    EXPECT_EQ(chosen({}, {}).address, "unix:/run/vfmgr/vfmgr.sock");
    contexts_.current = "a";
    EXPECT_EQ(chosen({}, {}).address, "https://a");
    EXPECT_EQ(chosen({}, {}).context, "a");
    EXPECT_EQ(chosen({}, choice("https://b")).address, "https://b");
    EXPECT_EQ(chosen(choice("unix:/c"), choice("https://b")).address, "unix:/c");
    EXPECT_EQ(chosen(choice("local"), choice("https://b")).address, "unix:/run/vfmgr/vfmgr.sock");
    EXPECT_EQ(chosen({}, choice("bare")).address, "https://bare");
}

TEST_F(Choice, OfCredentialsFollowsTheAddress) {
    contexts_.current = "a";
    EXPECT_EQ(chosen({}, {}), (Server{"https://a", "a", {"/ca-a", "", "/token-a"}}));
    EXPECT_EQ(chosen(choice("https://b"), {}), (Server{"https://b"}))
        << "a context's token goes to its own host only";
    EXPECT_EQ(chosen(choice("bare"), choice("a")).credentials.token_file, "");
    EXPECT_EQ(chosen(choice("a"), choice("", "/e")).credentials.token_file, "/token-a");
    EXPECT_EQ(chosen({}, choice("", "/e")).credentials.token_file, "/e");
    EXPECT_EQ(chosen({}, choice("a", "/e")).credentials.token_file, "/e");
    EXPECT_EQ(chosen(choice("bare"), choice("", "/e")).credentials.token_file, "/e");
    EXPECT_EQ(chosen(choice("a", "/o"), {}).credentials.token_file, "/o");
}

TEST_F(Choice, OfWhatToTrustIsNotMixed) {
    ServerChoice pinned;
    pinned.credentials.fingerprint = "ab";
    auto const server = chosen(choice("a"), pinned);
    EXPECT_EQ(server.credentials.ca_file, "/ca-a");
    EXPECT_EQ(server.credentials.fingerprint, "");
    pinned.host = "a";
    EXPECT_EQ(chosen(pinned, {}), (Server{"https://a", "a", {"", "ab", "/token-a"}}));
}

TEST_F(Choice, OfWhoTheClientIsIsNotMixed) {
    ServerChoice certified;
    certified.credentials.client_certificate = "/certificate";
    certified.credentials.client_key = "/key";
    auto const with = chosen(certified, choice("a")).credentials;
    EXPECT_EQ(with, (Credentials{"/ca-a", "", "", "/certificate", "/key"}));
    EXPECT_EQ(chosen(choice("a"), certified).credentials.client_certificate, "");
}

TEST_F(Choice, ReadsNoFilesForAnAddress) {
    chosen(choice("https://b"), choice("a"));
    chosen({}, choice("/run/x"));
    EXPECT_EQ(asked_, 0);
}

TEST_F(Choice, OfAnUnknownNameListsTheKnownOnes) {
    auto const none =
        choose_server(choice("b"), {}, [this]() -> Result<Contexts> { return contexts_; });
    EXPECT_EQ(none.error().detail, "there is no context 'b'");
    EXPECT_EQ(none.error().remedy,
              "use one of a, bare, local; or give unix:PATH or https://HOST:PORT");
}

}  // namespace
}  // namespace vfmgr
