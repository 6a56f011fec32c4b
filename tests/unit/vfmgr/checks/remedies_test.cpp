// SPDX-License-Identifier: Apache-2.0
// Remedies of all bundles and cases: what is printed to be typed can be typed, and changes
// something.
#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "tests/unit/vfmgr/checks/bundles.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

using namespace test;

void each_remedy(
    std::function<void(std::string const& name, Machine const&, Finding const&)> judge) {
    for_each_machine([&](std::string const& name, nlohmann::json const& document) {
        auto const facts = facts_of(document);
        auto const machine = read_machine(facts);
        for (auto const& finding : diagnose(facts, all_rules()).findings)
            if (finding.remedy) judge(name, machine, finding);
    });
}

// A module that is loaded is loaded again only after it was taken out.
TEST(Remedies, LoadNoModuleThatIsLoaded) {
    each_remedy([](std::string const& name, Machine const& machine, Finding const& finding) {
        std::set<std::string, std::less<>> taken_out;
        for (std::string_view command : finding.remedy->commands) {
            auto const words = words_in(command);
            if (words.size() < 2) continue;
            bool const removes =
                words[0] == "rmmod" || (words[0] == "modprobe" && words[1] == "-r");
            if (words[0] != "modprobe" && !removes) continue;
            bool takes = removes;
            for (auto word : words) {
                if (word == "&&" || word == ";") break;
                std::string module(word);
                std::ranges::replace(module, '-', '_');
                if (takes) taken_out.insert(module);
                if (takes || !module_loaded(machine, module)) continue;
                EXPECT_TRUE(taken_out.contains(module))
                    << name << ": " << finding.rule << " " << finding.subject << ": " << command;
            }
        }
    });
}

// No placeholder, and nothing to be thought about before.
TEST(Remedies, CanBeTypedAsTheyArePrinted) {
    std::regex const placeholder(
        R"((^|[ =/])(PF|VF|VM|N|NAME|ADDRESS|DEV|PORT|RELEASE)([ /.]|$)|<|…)");
    each_remedy([&](std::string const& name, Machine const&, Finding const& finding) {
        for (auto const& command : finding.remedy->commands) {
            EXPECT_FALSE(std::regex_search(command, placeholder))
                << name << ": " << finding.rule << ": " << command;
            EXPECT_EQ(command.find('\n'), std::string::npos) << command;
        }
        auto const& [commands, radius, note, drain] = *finding.remedy;
        EXPECT_FALSE(commands.empty() && note.empty() && drain.empty())
            << name << ": " << finding.rule << " has an empty remedy";
    });
}

}  // namespace
}  // namespace vfmgr::checks
