// SPDX-License-Identifier: Apache-2.0
// Remedies of all bundles and cases: what is printed to be typed can be typed, and changes
// something.
#include <gtest/gtest.h>

#include <regex>

#include "tests/unit/vfmgr/checks/bundles.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

using namespace test;

// Returns the modules that these commands load although they are loaded.
std::vector<std::string> loaded_twice(Machine const& machine, Remedy const& remedy) {
    std::vector<std::string> twice;
    std::set<std::string, std::less<>> taken_out;
    for (std::string_view command : remedy.commands) {
        auto const words = words_in(command);
        if (words.size() < 2) continue;
        bool const removes = words[0] == "rmmod" || (words[0] == "modprobe" && words[1] == "-r");
        if (words[0] != "modprobe" && !removes) continue;
        for (auto word : words) {
            if (word == "&&" || word == ";") break;
            std::string module(word);
            std::ranges::replace(module, '-', '_');
            if (removes) taken_out.insert(module);
            if (!removes && module_loaded(machine, module) && !taken_out.contains(module))
                twice.push_back(module);
        }
    }
    return twice;
}

// A module that is loaded is loaded again only after it was taken out.
TEST(Remedies, LoadNoModuleThatIsLoaded) {
    for (auto const& judged : all_machines()) {
        auto const machine = read_machine(judged.facts);
        for (auto const& finding : judged.report.findings)
            for (auto const& module : loaded_twice(machine, finding.remedy.value_or(Remedy{})))
                ADD_FAILURE() << judged.name << ": " << finding.rule << " " << finding.subject
                              << ": " << module;
    }
}

// No placeholder, and nothing to be thought about before.
TEST(Remedies, CanBeTypedAsTheyArePrinted) {
    std::regex const placeholder(
        R"((^|[ =/])(PF|VF|VM|N|NAME|ADDRESS|DEV|PORT|RELEASE)([ /.]|$)|<|…)");
    for (auto const& machine : all_machines())
        for (auto const& finding : machine.report.findings)
            for (auto const& command : finding.remedy.value_or(Remedy{}).commands) {
                EXPECT_FALSE(std::regex_search(command, placeholder))
                    << machine.name << ": " << finding.rule << ": " << command;
                EXPECT_EQ(command.find('\n'), std::string::npos) << command;
            }
}

}  // namespace
}  // namespace vfmgr::checks
