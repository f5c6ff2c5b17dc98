"""The paper's method, with the calibration corrected where the printed one is not differentially private."""
