// SPDX-License-Identifier: Apache-2.0
// What vfctl offers to complete a command line with; tests/contract has the shells.
#include "service/cli/complete.hpp"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <sstream>

#include "api/types/vm_info.hpp"
#include "service/cli/completions.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

std::string completed(test::Api const& api, std::vector<std::string> words) {
    words.insert(words.begin(), {"__complete", "--host", "unix:" + api.socket()});
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_vfctl(std::move(words)), 0);
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
}

TEST(Complete, FindsTheWordsPlace) {
    Session session;
    CLI::App app("", "vfctl");
    add_all(app, session);
    auto const at = [&](std::vector<std::string> const& words) { return place_of(app, words); };
    EXPECT_EQ(at({}).command, &app);
    EXPECT_EQ(at({"pf", "s"}).command->get_name(), "pf");
    EXPECT_EQ(at({"-qo", "json", "pf", "show", ""}).valued->get_name(), "PF");
    EXPECT_EQ(at({"pf", "show", "--dry-run", "ens1", ""}).valued, nullptr);
    EXPECT_EQ(at({"firmware", "set", "ens1", "ens2", ""}).valued->get_name(), "WORDS");
    EXPECT_EQ(at({"attach", "--trust"}).valued, nullptr);
    EXPECT_TRUE(at({"attach", "--trust"}).is_option);
    EXPECT_EQ(at({"attach", "--trust", ""}).valued->get_name(), "--trust");
    auto const inside = at({"attach", "--trust=o"});
    EXPECT_EQ(inside.before, "--trust=");
    EXPECT_EQ(inside.word, "o");
    EXPECT_EQ(at({"attach", "--", "--trust"}).valued->get_name(), "VM");
    EXPECT_EQ(at({"attach", "--none", "x"}).valued->get_name(), "VM") << "an unknown option";
}

// Its words, sorted: CLI11 lists what an option excludes in the order of the addresses.
std::vector<std::string> words_of_help(CLI::App const& command) {
    std::istringstream help(command.help());
    std::vector<std::string> words{std::istream_iterator<std::string>(help), {}};
    std::ranges::sort(words);
    return words;
}

std::vector<std::vector<std::string>> help_of_commands(CLI::App& app) {
    std::vector<std::vector<std::string>> all;
    for (auto* const command : app.get_subcommands({})) all.push_back(words_of_help(*command));
    return all;
}

TEST(Tree, HasTheCommandThatIsAskedFor) {
    Session session;
    CLI::App whole("", "vfctl");
    add_all(whole, session);
    auto const count = whole.get_subcommands({}).size();
    std::size_t fewest = count;
    for (auto* const command : whole.get_subcommands({})) {
        CLI::App part("", "vfctl");
        add_until(part, session, command->get_name());
        auto* const same = part.get_subcommand(command->get_name());  // or throws
        EXPECT_EQ(words_of_help(*same), words_of_help(*command));
        EXPECT_EQ(help_of_commands(*same), help_of_commands(*command));
        fewest = std::min(fewest, part.get_subcommands({}).size());
    }
    EXPECT_LT(fewest, count / 3) << "it adds all of them for each";
    CLI::App other("", "vfctl");
    add_until(other, session, "atach");
    EXPECT_EQ(help_of_commands(other), help_of_commands(whole)) << "for what help and errors list";
}

TEST(Complete, ChoicesAreThoseOfTheType) {
    EXPECT_EQ(choices_of("TEXT:{on,off}"), (std::vector<Completion>{{"on"}, {"off"}}));
    EXPECT_EQ(choices_of("FORMAT:{json}"), (std::vector<Completion>{{"json"}}));
    for (auto const* const none : {"", "TEXT", "UINT:[1 - 5]", "{a}", ":{a"})
        EXPECT_TRUE(choices_of(none).empty()) << none;
}

// The shells read a line for each completion.
TEST(Complete, ANameMakesNoLineOfItsOwn) {
    test::Api api;
    VmInfo vm;
    vm.name = "a\nb\tc\x1b[2J";
    api.on("GET /v1/vms", 200, test::list<VmInfo>({vm}));
    EXPECT_EQ(completed(api, {"attach", ""}), "a\\x0ab\\x09c\\x1b[2J\tother\n");
}

TEST(Complete, DoesNotWaitUntilMayAskAgain) {
    test::Api api;
    api.on("GET /v1/vms", 429, {{"code", "limit_exceeded"}}, {{"Retry-After", "30"}});
    EXPECT_EQ(completed(api, {"attach", ""}), "");
    EXPECT_EQ(api.lines().size(), 1U);
}

}  // namespace
}  // namespace vfmgr
