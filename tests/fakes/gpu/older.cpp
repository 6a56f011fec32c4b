// SPDX-License-Identifier: Apache-2.0
// Replaces newer.cpp: a driver of CUDA 10.2, which has none of those functions.
#include "tests/fakes/gpu/standin.hpp"

namespace vfmgr::standin {

int const newest_attribute = 110;

}  // namespace vfmgr::standin
