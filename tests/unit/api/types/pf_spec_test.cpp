// SPDX-License-Identifier: Apache-2.0
// PfSpec: what no host could accept is refused by the parser.
#include "api/types/pf.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

using Violations = std::vector<Violation>;

TEST(PfSpec, MembersMayBeLeftOut) {
    EXPECT_EQ(from_json_text<PfSpec>("{}").value(), PfSpec{});
    EXPECT_EQ(test::refusal_of<PfSpec>(R"({"mode": null, "num_vfs": null})").violations,
              (Violations{{"/mode", "must not be null; leave it out"},
                          {"/num_vfs", "must not be null; leave it out"}}));
    EXPECT_EQ(from_json_text<PfSpec>(R"({"num_vfs": 0})").value().num_vfs, 0)
        << "no VFs is a request";
    test::expect_survives<PfSpec>(R"({"mode": "enforce", "num_vfs": 65535})");
    EXPECT_EQ(test::refusal_of<PfSpec>(R"({"num_vfs": 65536})").violations,
              (Violations{{"/num_vfs", "must be a whole number from 0 to 65535"}}));
    test::expect_survives<PfSpec>(R"({"vf_driver": "mlx5_vfio_pci"})");
    for (auto const* const name : {"", "..", "a/b", "vfio pci"})
        EXPECT_EQ(
            test::refusal_of<PfSpec>(fmt::format(R"({{"vf_driver": "{}"}})", name)).violations,
            (Violations{{"/vf_driver", "must be a driver's name as in /sys/bus/pci/drivers"}}))
            << name;
}

}  // namespace
}  // namespace vfmgr
