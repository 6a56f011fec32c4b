// SPDX-License-Identifier: Apache-2.0
// Recordings of real hosts, kept beside a checkout and in no repository: their licences differ.
// VFMGR_RECORDINGS names their folder; without it ../shared/data is used. Where they are missing,
// each case is skipped. Machines are made of them as sysfs would have shown them.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/rules.hpp"

namespace vfmgr::checks::recordings {

namespace fs = std::filesystem;

// Empty: there are none.
[[nodiscard]] fs::path folder();
// "05-kernel-log/x.txt"; a file ending with .gz is unpacked.
[[nodiscard]] std::string content(std::string const& name);
// Unpacks a .tar.gz into an existing folder.
void unpack(std::string const& name, fs::path const& into);
// Collects a .tar.gz of a machine's files; `inner` is the folder in it that stands for "/".
[[nodiscard]] Facts collected(std::string const& name, std::string const& inner);
// All but the README files, by name.
[[nodiscard]] std::vector<std::string> all_names();

// A PCI function.
struct Function {
    std::string address;
    unsigned vendor = 0x15b3, device = 0x101d;
    unsigned subsystem_vendor = 0, subsystem_device = 0;
    unsigned class_code = 0x020000;
    unsigned revision = 0;
    int total_vfs = -1;  // not a PF's
    std::string driver{};
    std::string group{};  // IOMMU group
    std::string pf{};     // of a VF
};
// Parses lines of lspci -nn, with "IOMMU group 7 " in front where that was printed.
[[nodiscard]] std::vector<Function> functions_in(std::string const& lspci);
// Everything was collected, and the machine has only these.
[[nodiscard]] Facts machine_with(std::vector<Function> const& functions);
[[nodiscard]] Facts machine_with(std::vector<Function> const& functions, std::string log);

// Returns one rule's output, as vfctl doctor prints it.
[[nodiscard]] std::string said(Facts const& facts, std::string_view rule);

class Recordings : public testing::Test {
  protected:
    void SetUp() override {
        if (folder().empty()) GTEST_SKIP() << "the recordings are not beside this checkout";
    }
};

}  // namespace vfmgr::checks::recordings
