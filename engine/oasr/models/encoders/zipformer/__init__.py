"""The Zipformer encoder (Yao et al. 2023), as it computes once training is over.

What only shapes gradients in icefall's modules (balancers, whitening, schedules, layer skipping) has no
counterpart here.
"""
