// SPDX-License-Identifier: Apache-2.0
// Owning pointers to libvirt's objects. Any thread; releasing a connection may block.
#pragma once

#include <libvirt/libvirt.h>

#include <cstdlib>

#include "api/os/handle.hpp"

namespace vfmgr {

using VirConnect = Handle<virConnect, virConnectClose>;
using VirDomain = Handle<virDomain, virDomainFree>;
using VirNetwork = Handle<virNetwork, virNetworkFree>;
using VirText = Handle<char, std::free>;

}  // namespace vfmgr
