# SPDX-License-Identifier: Apache-2.0
"""The lab: an emulated SR-IOV host, its virtual machines, and the scenarios that run in them."""
