// SPDX-License-Identifier: Apache-2.0
// Owners of verbs objects: each object is freed once, in the right order, by its owner. Not shared
// between threads without the owner's lock.
#pragma once

#include <infiniband/verbs.h>

#include "api/os/handle.hpp"

namespace vfmgr::verify {

using VerbsDevices = Handle<ibv_device*, ibv_free_device_list>;
using VerbsContext = Handle<ibv_context, ibv_close_device>;
using VerbsPd = Handle<ibv_pd, ibv_dealloc_pd>;
using VerbsChannel = Handle<ibv_comp_channel, ibv_destroy_comp_channel>;
using VerbsQueue = Handle<ibv_cq, ibv_destroy_cq>;
using VerbsReceives = Handle<ibv_srq, ibv_destroy_srq>;
using VerbsPair = Handle<ibv_qp, ibv_destroy_qp>;
using VerbsAddress = Handle<ibv_ah, ibv_destroy_ah>;
using VerbsMr = Handle<ibv_mr, ibv_dereg_mr>;

}  // namespace vfmgr::verify
