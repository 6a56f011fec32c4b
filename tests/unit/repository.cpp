// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/repository.hpp"

namespace vfmgr::test {

// Not made from __FILE__: the compiler cache makes it relative, so that clones share objects. Only
// this file has the path, so only this file is compiled anew in each clone.
std::filesystem::path repository() {
    return VFMGR_REPOSITORY;
}

}  // namespace vfmgr::test
