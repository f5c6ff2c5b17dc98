"""The model: sum, product and leaf nodes; inference, sampling, storage. Knows no learner."""
