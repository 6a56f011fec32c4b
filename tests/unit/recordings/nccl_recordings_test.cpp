// SPDX-License-Identifier: Apache-2.0
// The topology files that clouds give NCCL, and two that NCCL wrote itself: distance() returns for
// the same tree what each states about GPUs and NICs. "compared" is followed by how many.
#include "tests/unit/recordings/host_trees.hpp"
#include "tests/unit/recordings/recordings.hpp"

namespace vfmgr::checks::recordings {
namespace {

class NcclRecordings : public Recordings {
  protected:
    // NCCL's words, in which host bridges of one node are PHB; here each tree has one of its own.
    static std::string compare(std::string const& name) {
        auto const xml = content("07-gpu-topology/" + name);
        auto expected = said_by(xml);
        for (auto& [pair, said] : expected)
            if (said == PciDistance::phb) said = PciDistance::node;
        return compared(host_in(xml), expected);
    }
    static std::string compare_as_nccl(std::string const& name) {
        auto const xml = content("07-gpu-topology/" + name);
        return compared_as_nccl(host_in(xml), said_by(flattened(xml)));
    }

  private:
    static Facts host_in(std::string const& xml) {
        std::vector<TreeFunction> tree;
        for (auto const& one : functions_of_nccl(xml)) tree.push_back(one.placed);
        return host_of(tree);
    }
    static Distances said_by(std::string const& xml) {
        std::map<PciAddress, NcclFunction> by_address;
        std::vector<PciAddress> addresses;
        for (auto const& one : functions_of_nccl(xml)) {
            by_address.emplace(one.placed.address(), one);
            addresses.push_back(one.placed.address());
        }
        return distances(addresses, [&](auto const& a, auto const& b) {
            return nccl_distance(by_address.at(a), by_address.at(b));
        });
    }
};

// Written for VMs of this kind by an author who knows the hosts: in the VM itself the tree is flat.
// Two GPUs and a NIC below each of four switches.
TEST_F(NcclRecordings, AwsP4dAsItsVmsAreTold) {
    EXPECT_EQ(compare("aws-p4d-24xl-topo.xml"),
              "GPU-NIC 8 PIX, 8 NODE, 16 SYS; others 4 PIX, 10 NODE, 20 SYS");
}

// Written for VMs, whose functions have a PCI domain each. Two GPUs and two VFs below each of four
// switches, one for each quarter of the CPUs.
TEST_F(NcclRecordings, AzureNdv4AsItsVmsAreTold) {
    EXPECT_EQ(compare("azure-ndv4-topo.xml"), "GPU-NIC 16 PIX, 48 SYS; others 8 PIX, 48 SYS");
}

// Such a VM by lspci: the functions of that file, each alone in its domain, and one NIC more. The
// file's distances do not show there.
TEST_F(NcclRecordings, AzureNdv4VmItselfShowsNoDistances) {
    auto const functions = functions_in(content("07-gpu-topology/lspci-nn-a100.txt"));
    std::map<PciAddress, unsigned> seen;
    for (auto const& one : functions)
        if (one.class_code == 0x030200 || one.vendor == vendor_mellanox)
            seen[PciAddress::parse(one.address).value()] = one.class_code;
    for (auto const& told : functions_of_nccl(content("07-gpu-topology/azure-ndv4-topo.xml")))
        EXPECT_EQ(seen[told.placed.address()], told.placed.class_code) << told.placed.path;
    std::vector<PciAddress> addresses;
    for (auto const& [address, class_code] : seen) addresses.push_back(address);
    EXPECT_EQ(compared(machine_with(functions),
                       distances(addresses,
                                 [](auto const&, auto const&) { return PciDistance::unknown; })),
              "GPU-NIC 72 unknown; others 64 unknown");
}

// Written for VMs; its NIC is not a PCI function there, so it has no place.
TEST_F(NcclRecordings, AzureNcv4AsItsVmsAreToldHasGpusAlone) {
    EXPECT_EQ(compare("azure-ncv4-topo.xml"), "GPU-NIC none; others 6 SYS");
}

// A host itself, dumped by NCCL: a GPU and a NIC below a switch each, both below a third.
TEST_F(NcclRecordings, OciH100Host) {
    EXPECT_EQ(compare("oci-H100-topology.xml"),
              "GPU-NIC 8 PXB, 24 NODE, 32 SYS; others 24 NODE, 32 SYS");
}

// Each of its three switches is one level of one part, a PEX89104 by its ids; NCCL detects that.
TEST_F(NcclRecordings, OciH100HostAsNcclTakesIt) {
    EXPECT_EQ(compare_as_nccl("oci-H100-topology.xml"),
              "GPU-NIC 8 PIX, 24 PHB, 32 SYS; others 24 PHB, 32 SYS");
}

// Its switches report 0xffff as their ids.
TEST_F(NcclRecordings, AwsP4dAsNcclTakesIt) {
    EXPECT_EQ(compare_as_nccl("aws-p4d-24xl-topo.xml"),
              "GPU-NIC 8 PIX, 8 PHB, 16 SYS; others 4 PIX, 10 PHB, 20 SYS");
}

// A host itself, dumped by NCCL: no switch at all.
TEST_F(NcclRecordings, L40sHost) {
    EXPECT_EQ(compare("nccl-dump-l40s-cx7.xml"), "GPU-NIC 4 NODE, 4 SYS; others 2 NODE, 5 SYS");
}

}  // namespace
}  // namespace vfmgr::checks::recordings
